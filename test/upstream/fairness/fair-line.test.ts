import { describe, expect, it } from 'vitest'

import { FairLine, type Waiting } from '../../../src/upstream/fairness/fair-line.ts'
import { NEWCOMERS, type QueueKey } from '../../../src/upstream/fairness/queue-key.ts'

interface Named extends Waiting {
  readonly name: string
}

const accepted = new Set<string>()

/** `p1/x 2`: the second item of owner x of partner p1; an owner with `?` is a newcomer. */
function item(name: string): Named {
  const [owner = ''] = name.split(' ')
  const queueKey: QueueKey = {
    partner: owner.split('/')[0] ?? '',
    owner,
    isAccepted: () => !owner.endsWith('?') || accepted.has(owner),
  }
  return { name, queueKey }
}

function lineOf(...names: string[]): FairLine<Named> {
  const line = new FairLine<Named>()
  for (const name of names) line.push(item(name))
  return line
}

function drain(line: FairLine<Named>, mayServe?: (holder: string) => boolean): string[] {
  const names: string[] = []
  for (let next = line.shift(mayServe); next !== undefined; next = line.shift(mayServe)) names.push(next.name)
  return names
}

describe('a fair line', () => {
  it('gives partners turns, within a partner its owners, within an owner the order', () => {
    const line = lineOf('a/x 1', 'a/x 2', 'a/x 3', 'a/y 1', 'b/z 1', 'b/z 2')
    expect(drain(line)).toEqual(['a/x 1', 'b/z 1', 'a/y 1', 'b/z 2', 'a/x 2', 'a/x 3'])
    expect(line.size).toBe(0)
  })

  it('gives all newcomers one turn together', () => {
    const flood = Array.from({ length: 5 }, (_, index) => `a/${index}? 1`)
    expect(drain(lineOf(...flood, 'a/x 1', 'a/x 2'))).toEqual([
      'a/0? 1', 'a/x 1', 'a/1? 1', 'a/x 2', 'a/2? 1', 'a/3? 1', 'a/4? 1',
    ]) // prettier-ignore
  })

  it('passes over those that may not be served, and keeps their place', () => {
    const line = lineOf('a/x 1', 'a/y 1', 'a/0? 1')
    expect(drain(line, (holder) => holder === 'a/y')).toEqual(['a/y 1'])
    expect(drain(line, (holder) => holder === NEWCOMERS)).toEqual(['a/0? 1'])
    expect(drain(line)).toEqual(['a/x 1'])
  })

  it('moves an owner to its partner once V3 has accepted it', () => {
    const line = lineOf('a/0? 1', 'a/1? 1', 'a/1? 2')
    accepted.add('a/1?')
    expect(drain(line, (holder) => holder !== NEWCOMERS)).toEqual(['a/1? 1', 'a/1? 2'])
    expect(line.size).toBe(1)
  })

  it('keeps the order of an owner that is accepted while it waits', () => {
    const line = lineOf('a/3? 1', 'a/3? 2')
    accepted.add('a/3?')
    line.push(item('a/3? 3'))
    expect(drain(line)).toEqual(['a/3? 1', 'a/3? 2', 'a/3? 3'])
  })

  it('keeps the order of many items while others come and go', () => {
    const line = new FairLine<Named>()
    const [pushed, taken]: [string[], string[]] = [[], []]
    for (let index = 0; index < 1_000; index += 1) {
      const name = `a/x ${index}`
      pushed.push(name)
      line.push(item(name))
      if (index % 3 > 0) taken.push(line.shift()?.name ?? '')
    }
    expect([...taken, ...drain(line)]).toEqual(pushed)
  })

  it('lets anybody leave, wherever it is', () => {
    const line = new FairLine<Named>()
    const items = ['a/x 1', 'a/x 2', 'a/2? 1'].map(item)
    for (const one of items) line.push(one)
    accepted.add('a/2?')
    for (const one of items) line.remove(one)
    for (const one of items) line.remove(one)
    expect([line.size, line.shift()]).toEqual([0, undefined])
  })
})
