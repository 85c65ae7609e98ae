import { Writable } from 'node:stream'

import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { Progress } from '../../src/cli/progress.ts'

const ERASE = '\u001b[1G\u001b[2K'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

interface Screen {
  readonly progress: Progress
  /** Everything that was written to either stream, in order. */
  readonly written: () => string
}

function open(isTerminal: boolean, total: number | undefined, columns = 100): Screen {
  let text = ''
  const stream = (): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        text += chunk.toString()
        done()
      },
    })
  const status = Object.assign(stream(), { columns })
  const progress = new Progress({
    output: stream(),
    status,
    isTerminal,
    total,
    nowMs: () => performance.now(),
  })
  return { progress, written: () => text }
}

test('without a terminal: lines, and one for each second without a part', () => {
  const { progress, written } = open(false, 3)
  vi.advanceTimersByTime(900)
  progress.advance('first')
  vi.advanceTimersByTime(3_000)
  progress.advance(undefined)
  progress.stop()
  vi.advanceTimersByTime(3_000)
  expect(written()).toBe(
    'first\n' +
      'waiting for the reply: 1 s, 1 of 3 parts so far\n' +
      'waiting for the reply: 2 s, 1 of 3 parts so far\n',
  )
})

test('on a terminal: a bar below the lines, with rate and time left, then what it waits for', () => {
  const { progress, written } = open(true, 4)
  vi.advanceTimersByTime(500)
  progress.advance('first')
  vi.advanceTimersByTime(2_600)
  progress.stop()
  progress.stop()
  expect(written().split(ERASE)).toEqual([
    '',
    '[------------------------] 0 of 4 parts, 0.0/s',
    'first\n',
    '[######------------------] 1 of 4 parts, 2.0/s, 2 s left',
    '[######------------------] 1 of 4 parts, 1.0/s, 3 s left',
    '[######------------------] waiting for the reply: 1 s, 1 of 4 parts so far',
    '[######------------------] waiting for the reply: 2 s, 1 of 4 parts so far',
    '',
  ])
})

test.each([
  [20, '[------------------'],
  [0, '[------------------------] 0 of 4 parts, 0.0/s'],
])('a terminal of %i columns gets no line that wraps', (columns, line) => {
  const { progress, written } = open(true, 4, columns)
  progress.stop()
  expect(written()).toBe(`${ERASE}${line}${ERASE}`)
})

test('without a known total there is a count alone', () => {
  const { progress, written } = open(true, undefined)
  vi.advanceTimersByTime(500)
  progress.advance(undefined)
  progress.stop()
  expect(written().split(ERASE).at(-2)).toBe('1 parts, 2.0/s')
})
