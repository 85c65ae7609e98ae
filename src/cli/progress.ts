import { clearLine, cursorTo } from 'node:readline'

import { readEnvironment } from '../config/environment.ts'

interface ProgressOptions {
  /** Undefined: not known. */
  readonly total: number | undefined
  /** What is counted, in the plural. */
  readonly unit: string
  /** What was there before: it counts, and says nothing of the rate. Default 0. */
  readonly before?: number
  /** Without a terminal: the time without a printed line after which one says how far it is. */
  readonly everyMs: number
}

/**
 * How far a command has come, on standard error: a line that is redrawn in place, or single lines without a terminal. The results go to
 * standard output above it, where cli-progress can only write to the stream of its bar, and without a terminal repeats the bar all the time.
 */
export interface Progress {
  /** So much is done; `detail` stands behind it. */
  advance(done: number, detail?: string): void
  /** Prints a line on standard output, above that of the progress. */
  print(line: string): void
  /** Removes the line. */
  stop(): void
}

/** Shows `12 of 30 parts, 5.2/s, 4 s left`. */
export function showProgress({ total, unit, before = 0, everyMs }: ProgressOptions): Progress {
  const { stderr, stdout } = process
  const isTerminal = stderr.isTTY && !readEnvironment().isDumbTerminal
  const startMs = performance.now()
  let [done, detail, saidMs] = [before, '', startMs]
  let isStopped = false
  const text = (): string => {
    const rate = ((done - before) / Math.max(performance.now() - startMs, 1)) * 1_000
    const left =
      total === undefined || rate === 0 ? '' : `, ${Math.ceil(Math.max(total - done, 0) / rate)} s left`
    const count = total === undefined ? `${done} ${unit}` : `${done} of ${total} ${unit}`
    return `${count}${detail === '' ? '' : `, ${detail}`}, ${rate.toFixed(1)}/s${left}`
  }
  const erase = (): void => {
    if (!isTerminal) return
    cursorTo(stderr, 0)
    clearLine(stderr, 0)
  }
  const draw = (): void => {
    erase()
    // One column is left: a full line would wrap, and could not be erased. Some terminals do not know their width.
    if (isTerminal) stderr.write(text().slice(0, (stderr.columns > 1 ? stderr.columns : 80) - 1))
  }
  const ticks = setInterval(() => {
    if (isTerminal) draw()
    else if (performance.now() - saidMs >= everyMs) {
      saidMs = performance.now()
      stderr.write(`${text()}\n`)
    }
  }, 1_000).unref()
  draw()
  return {
    advance: (now, more = '') => {
      done = now
      detail = more
      draw()
    },
    print: (line) => {
      erase()
      stdout.write(`${line}\n`)
      saidMs = performance.now()
      draw()
    },
    stop: () => {
      if (isStopped) return
      isStopped = true
      clearInterval(ticks)
      erase()
    },
  }
}
