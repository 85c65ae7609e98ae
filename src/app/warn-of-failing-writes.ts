import type { Clock } from '../clock.ts'
import type { Events, WritesFailing } from '../observability/events.ts'

const EVERY_MS = 60_000

/** Decorates events: batches whose records V3 did not take are reported at once, and then once a minute with their number. */
export function warnOfFailingWrites(events: Events, clock: Pick<Clock, 'after'>): Events {
  const failing = new Map<string, WritesFailing>()
  const report = (partner: string): void => {
    const counts = failing.get(partner)
    failing.delete(partner)
    if (counts === undefined || counts.batches === 0) return
    failing.set(partner, { partner, batches: 0, notApplied: 0, unknown: 0 })
    events.writesFailing(counts)
    clock.after(EVERY_MS, () => report(partner))
  }
  return {
    ...events,
    batchAnswered: (event) => {
      events.batchAnswered(event)
      const { partner, unknown, outcomesShown } = event
      // Of a batch whose outcomes its client does not see, the records may be those that the configuration drops.
      const notApplied = outcomesShown ? event.notApplied : 0
      if (notApplied + unknown === 0) return
      const before = failing.get(partner)
      const { batches = 0, notApplied: earlier = 0, unknown: open = 0 } = before ?? {}
      failing.set(partner, {
        partner,
        batches: batches + 1,
        notApplied: earlier + notApplied,
        unknown: open + unknown,
      })
      if (before === undefined) report(partner)
    },
  }
}
