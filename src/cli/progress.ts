interface ProgressOptions {
  /** The total number of units, or `undefined` if the total is not known. */
  readonly total: number | undefined
  readonly unit: string
  /** The minimum interval in milliseconds between two printed lines. */
  readonly everyMs: number
}

const TICK_MS = 250

export type Progress = ReturnType<typeof showProgress>

/** Prints progress lines such as `12 of 30 parts, 5.2/s, 4 s left` on standard error, because standard output is for results. */
export function showProgress({ total, unit, everyMs }: ProgressOptions) {
  const startMs = performance.now()
  let [done, detail, saidMs] = [0, '', startMs]
  const text = (): string => {
    const rate = (done / Math.max(performance.now() - startMs, 1)) * 1_000
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
    /** Sets the number of units that are done. `more` is printed after the count. */
    advance: (now: number, more = ''): void => {
      done = now
      detail = more
      // Work that keeps the event loop busy delays the interval, so lines are also printed here.
      sayWhenDue()
    },
    print: (line: string): void => {
      process.stdout.write(`${line}\n`)
      saidMs = performance.now()
    },
    stop: (): void => clearInterval(ticks),
  }
}
