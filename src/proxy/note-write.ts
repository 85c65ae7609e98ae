import type { Events } from '../observability/events.ts'
import { isWriteKind } from '../rollout/index.ts'
import type { LiveSeen } from '../rollout/evidence/seen-writes.ts'
import type { ExchangeObserver, Received } from './exchange.ts'

/**
 * Counts the records of a write for the advice on the next step of its partner, once the write is over and if a service has accepted the
 * credentials of its client by then. At `complete` nothing is counted, since no step follows.
 */
export function noteWrite(
  { seen }: { readonly seen: LiveSeen },
  { kind, client, unit, entry, receivedMs }: Received,
  isAccepted: () => boolean,
): Partial<ExchangeObserver> {
  const { side, stage, revision } = entry
  const partner = client.partner.id
  if (!isWriteKind(kind) || stage === 'complete') return {}
  let count = (): void => undefined
  return {
    decoded: (plan) => {
      if (plan === undefined) {
        count = () => seen.unreadable({ partner, stage, revision })
        return
      }
      const records = () =>
        plan.records.map(({ key, record }) => ({
          key: key === '' ? undefined : key,
          code: record?.AttendanceCode.ExternalID,
        }))
      count = () => seen.wrote({ partner, stage, revision, unit, side, receivedMs, records })
    },
    ended: () => {
      if (isAccepted()) count()
    },
  }
}

/** Logs each write that V3 or the journal has answered. */
export function logWrite(
  { events, nowMs }: { readonly events: Events; readonly nowMs: () => number },
  partner: string,
): Partial<ExchangeObserver> {
  return {
    replied: (reply) => {
      if (reply.kind !== 'answered') return
      const { plan, receivedMs } = reply.planned
      const { tally, queuedMs, replayed } = reply.answered
      events.batchAnswered({
        ...tally,
        partner,
        records: plan.records.length,
        changesets: plan.changesets,
        outcomesShown: plan.outcomesShown,
        unmappedFields: plan.unmappedFields,
        convertedFields: plan.convertedFields,
        replayed,
        durationMs: nowMs() - receivedMs,
        queuedMs,
      })
    },
  }
}
