import type { Clock } from '../clock.ts'
import type { BatchAnswered, Events, WritesFailing } from '../observability/events.ts'

const EVERY_MS = 60_000

/** Returns events that also warn of batches with failed records: of the first batch at once, and of further batches once a minute. */
export function warnOfFailingWrites(events: Events, clock: Pick<Clock, 'after'>): Events {
  const failing = new Map<string, WritesFailing>()
  const reasons = new Map<string, Map<string, number>>()
  const report = (partner: string): void => {
    const counts = failing.get(partner)
    failing.delete(partner)
    if (counts === undefined || counts.batches === 0) return
    failing.set(partner, { partner, batches: 0, notApplied: 0, unknown: 0 })
    const [most] = [...(reasons.get(partner) ?? [])].sort(([, one], [, other]) => other - one)
    reasons.delete(partner)
    events.writesFailing(most === undefined ? counts : { ...counts, reason: most[0] })
    clock.after(EVERY_MS, () => report(partner))
  }
  const add = ({ partner, notApplied, unknown, reason, outcomesShown }: BatchAnswered): void => {
    // Does not count unapplied records of a mismatched batch as failed, because the configuration may have dropped them.
    const held = outcomesShown ? notApplied : 0
    if (held + unknown === 0) return
    if (reason !== undefined) {
      const counted = reasons.get(partner) ?? new Map<string, number>()
      reasons.set(partner, counted.set(reason, (counted.get(reason) ?? 0) + 1))
    }
    const before = failing.get(partner)
    failing.set(partner, {
      partner,
      batches: (before?.batches ?? 0) + 1,
      notApplied: (before?.notApplied ?? 0) + held,
      unknown: (before?.unknown ?? 0) + unknown,
    })
    if (before === undefined) report(partner)
  }
  return {
    ...events,
    batchAnswered: (event) => {
      add(event)
      events.batchAnswered(event)
    },
  }
}
