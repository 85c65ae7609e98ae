import type { Clock } from '../clock.ts'
import { arrivalMs, type Partner } from '../partners/partner.ts'
import type { SentTogether } from '../v3/index.ts'

/**
 * The records of a `$batch` whose reply was lost, as reads show them. V3 applies them one after another, with or without a connection, so the
 * batch is over only when none of them was seen for a time that grows with those that are missing.
 */
export interface Execution {
  /** Returns the time of the loss, or that of the last record that was seen, by the clock, ms. */
  sinceMs(): number
  /** Returns the time at which the batch is over if no other record is seen before, by the clock, ms. */
  untilMs(): number
  /** Returns how many of its records are missing. */
  missing(): number
  /** Notes that one more record was seen. */
  appeared(): void
}

/** Records that may have been sent together, `atOnce` of them at the most in one `$batch`. Default: all of them. */
interface Together extends SentTogether {
  readonly atOnce?: number
}

/** Creates what finds the execution of records that were sent together; the records of one `$batch` share one. */
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
  let left = records
  const missing = (): number => Math.min(left, atOnce)
  return {
    sinceMs: () => sinceMs,
    untilMs: () => sinceMs + arrivalMs(partner, missing()),
    missing,
    appeared: () => {
      left -= 1
      sinceMs = clock.nowMs()
    },
  }
}
