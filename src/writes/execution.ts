import type { Clock } from '../clock.ts'
import { arrivalMs, type Partner } from '../partners/partner.ts'
import type { SentTogether } from '../v3/index.ts'

/**
 * The progress of a `$batch` whose reply was lost, as reads of V3 show it. V3 applies the records of a `$batch` one after another, even
 * after the connection is lost. The `$batch` therefore counts as over only when no record has appeared for a time that grows with the
 * number of missing records.
 */
export interface Execution {
  /** Returns the monotonic time in milliseconds at which the reply was lost or the last record appeared. */
  sinceMs(): number
  /** Returns the monotonic time in milliseconds at which the `$batch` is over if no further record appears. */
  untilMs(): number
  missing(): number
  appeared(): void
}

/** Records that may have been sent together, with at most `atOnce` records in one `$batch`. Default: all records in one `$batch`. */
interface Together extends SentTogether {
  readonly atOnce?: number
}

/** Creates a function that returns the `Execution` of a `$batch`. Calls with the same `together` object return the same execution. */
export function createExecutions(
  partner: Pick<Partner, 'readBackAfterMs' | 'batchRecordMs'>,
  clock: Pick<Clock, 'nowMs'>,
): (together: Together | undefined, lostMs?: number) => Execution | undefined {
  const known = new WeakMap<Together, Execution>()
  return (together, lostMs = clock.nowMs()) => {
    if (together === undefined) return undefined
    const execution = known.get(together) ?? createExecution(partner, clock, together, lostMs)
    known.set(together, execution)
    return execution
  }
}

function createExecution(
  partner: Pick<Partner, 'readBackAfterMs' | 'batchRecordMs'>,
  clock: Pick<Clock, 'nowMs'>,
  { records, atOnce = records }: Together,
  lostMs: number,
): Execution {
  let sinceMs = lostMs
  let remaining = records
  const missing = (): number => Math.min(remaining, atOnce)
  return {
    sinceMs: () => sinceMs,
    untilMs: () => sinceMs + arrivalMs(partner, missing()),
    missing,
    appeared: () => {
      remaining -= 1
      sinceMs = clock.nowMs()
    },
  }
}
