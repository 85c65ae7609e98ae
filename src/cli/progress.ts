interface ProgressOptions {
  /** Undefined: not known. */
  readonly total: number | undefined
  /** What is counted, in the plural. */
  readonly unit: string
  /** What was there before: it counts, and says nothing of the rate. Default 0. */
  readonly before?: number
  /** The time without a printed line after which one says how far it is. */
  readonly everyMs: number
}

/** How late a line may be. */
const TICK_MS = 250

export type Progress = ReturnType<typeof showProgress>

/** Shows how far a command has come, as lines on standard error, `12 of 30 parts, 5.2/s, 4 s left`; the results go to standard output. */
export function showProgress({ total, unit, before = 0, everyMs }: ProgressOptions) {
  const startMs = performance.now()
  let [done, detail, saidMs] = [before, '', startMs]
  const text = (): string => {
    const rate = ((done - before) / Math.max(performance.now() - startMs, 1)) * 1_000
    const left =
      total === undefined || rate === 0 ? '' : `, ${Math.ceil(Math.max(total - done, 0) / rate)} s left`
    const count = total === undefined ? `${done} ${unit}` : `${done} of ${total} ${unit}`
    return `${count}${detail === '' ? '' : `, ${detail}`}, ${rate.toFixed(1)}/s${left}`
  }
  const sayWhenDue = (): void => {
    if (performance.now() - saidMs < everyMs) return
    saidMs = performance.now()
    process.stderr.write(`${text()}\n`)
  }
  const ticks = setInterval(sayWhenDue, TICK_MS).unref()
  return {
    /** So much is done; `more` stands behind it. */
    advance: (now: number, more = ''): void => {
      done = now
      detail = more
      // Work that leaves no time for the interval still shows how far it is.
      sayWhenDue()
    },
    /** Prints a line on standard output. */
    print: (line: string): void => {
      process.stdout.write(`${line}\n`)
      saidMs = performance.now()
    },
    stop: (): void => clearInterval(ticks),
  }
}
