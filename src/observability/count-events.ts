import type { Counter } from 'prom-client'

import type { BatchTally, Events } from './events.ts'
import { type Instruments, statusClass, statusClasses } from './instruments.ts'

const outcomes = ['accepted', 'refused', 'not_applied', 'unknown']

/** Returns a decorator that counts events and forwards them; the instruments are created once. */
export function createEventCounting({ counter, histogram }: Instruments): (events: Events) => Events {
  const requests = counter('requests_total', 'Requests that were answered.', ['partner', 'kind', 'status'], { kind: ['batch', 'read', 'pass_through'], status: statusClasses }) // prettier-ignore
  const durations = histogram('request_duration', 'From a request to its answer.', ['partner', 'kind'])
  const records = counter('records_total', 'Records of V2 writes by their first outcome.', ['partner', 'outcome'], { outcome: outcomes }) // prettier-ignore
  const replays = counter('batches_replayed_total', 'Repeated batches that were answered from the journal.', [
    'partner',
  ])
  const reused = counter(
    'batch_ids_reused_total',
    'Batches with the ids of an earlier batch and other content.',
    ['partner'],
  )
  const codesUnknown = counter('unmarked_codes_unknown_total', 'Code lookups that V3 refused or does not have.', ['partner']) // prettier-ignore
  const recovered = counter('records_recovered_total', 'Records that the background work finished.', ['partner', 'outcome'], { outcome: outcomes }) // prettier-ignore
  const unrecovered = counter('recovery_failures_total', 'Failures of the background work.', ['code']) // prettier-ignore
  const unmapped = counter('unmapped_fields_total', 'Record fields without a rule.', ['partner'])
  const converted = counter('converted_fields_total', 'Record fields that were read from another form.', ['partner']) // prettier-ignore
  const rows = counter('read_rows_total', 'Recorded marks in replies to V2 reads.', ['partner'])
  const pages = counter('read_pages_total', 'V3 replies that were read for V2 reads.', ['partner'])
  const refusals = counter('requests_refused_total', 'Requests that were refused as a whole.', ['code'])
  const slow = counter('slow_clients_total', 'Clients that were disconnected for being too slow.', ['phase'], { phase: ['headers', 'upload', 'reply'] }) // prettier-ignore
  const denials = counter('credentials_denied_total', 'Writes whose credentials V3 denied.', ['partner'])
  const ownDenials = counter('own_credentials_denied_total', 'Calls that V3 denied for the key or the client that the configuration has.', ['partner', 'what'], { what: ['subscriptionKey', 'token'] }) // prettier-ignore
  const failures = counter('pass_through_failures_total', 'Passed-through requests without a complete reply.', ['reason'], { reason: ['unreachable', 'brokenReply'] }) // prettier-ignore
  const relayFailures = counter('relay_failures_total', 'Requests to V2 without a complete reply.', ['reason'], { reason: ['unreachable', 'lost', 'brokenReply'] }) // prettier-ignore
  const stageChanges = counter('stage_changes_total', 'Changes of stages that took effect here.', ['partner', 'stage'], { stage: ['legacy', 'shadow', 'canary', 'v3', 'complete'] }) // prettier-ignore
  const guardActions = counter('stage_guard_actions_total', 'Actions of guards.', ['partner', 'action'], { action: ['notify', 'hold', 'back'] }) // prettier-ignore
  const guardFailures = counter('stage_guard_failures_total', 'Times that the evidence of guards could not be read or kept.', ['partner']) // prettier-ignore
  const unrecorded = counter('stage_unrecorded_total', 'Writes that V2 was sent and the journal does not know.', ['partner']) // prettier-ignore
  const internal = counter('internal_errors_total', 'Unexpected errors.', [])
  const journalFailures = counter('journal_failures_total', 'Times that the journal became unavailable.', [])
  const leasesLost = counter('journal_leases_lost_total', 'Times that this instance lost its lease.', []) // prettier-ignore

  const answered = (kind: string, partner: string, status: number, durationMs: number): void => {
    requests.inc({ partner, kind, status: statusClass(status) })
    durations.observe({ partner, kind }, durationMs / 1_000)
  }
  return (events) => ({
    ...events,
    batchAnswered: (event) => {
      events.batchAnswered(event)
      const { partner } = event
      answered('batch', partner, 200, event.durationMs)
      // The records of a repeated batch were counted with its first answer.
      if (event.replayed) {
        replays.inc({ partner })
        return
      }
      countRecords(records, event)
      unmapped.inc({ partner }, event.unmappedFields)
      converted.inc({ partner }, event.convertedFields)
    },
    readAnswered: (event) => {
      events.readAnswered(event)
      const { partner } = event
      answered('read', partner, event.status, event.durationMs)
      rows.inc({ partner }, event.rows)
      pages.inc({ partner }, event.pages)
    },
    passedThrough: (event) => {
      events.passedThrough(event)
      answered('pass_through', event.partner, event.status, event.durationMs)
    },
    requestRefused: (event) => {
      events.requestRefused(event)
      refusals.inc({ code: event.code })
    },
    batchIdsReused: (event) => {
      events.batchIdsReused(event)
      reused.inc(event)
    },
    unmarkedCodesUnknown: (event) => {
      events.unmarkedCodesUnknown(event)
      codesUnknown.inc({ partner: event.partner })
    },
    recovered: (event) => {
      events.recovered(event)
      countRecords(recovered, event)
    },
    recoveryFailed: (event) => {
      events.recoveryFailed(event)
      unrecovered.inc(event)
    },
    journalFailed: (event) => {
      events.journalFailed(event)
      journalFailures.inc()
    },
    journalLeaseLost: () => {
      events.journalLeaseLost()
      leasesLost.inc()
    },
    slowClient: (event) => {
      events.slowClient(event)
      slow.inc(event)
    },
    stageChanged: (event) => {
      events.stageChanged(event)
      if (event.from !== null) stageChanges.inc({ partner: event.partner, stage: event.to })
    },
    guardActed: (event) => {
      events.guardActed(event)
      const { partner, action } = event
      guardActions.inc({ partner, action })
    },
    guardsFailed: (event) => {
      events.guardsFailed(event)
      guardFailures.inc({ partner: event.partner })
    },
    credentialsDenied: (event) => {
      events.credentialsDenied(event)
      denials.inc({ partner: event.partner })
    },
    ownCredentialsDenied: (event) => {
      events.ownCredentialsDenied(event)
      ownDenials.inc(event)
    },
    passThroughFailed: (event) => {
      events.passThroughFailed(event)
      failures.inc(event)
    },
    relayFailed: (event) => {
      events.relayFailed(event)
      relayFailures.inc(event)
    },
    relayedUnrecorded: (event) => {
      events.relayedUnrecorded(event)
      unrecorded.inc(event)
    },
    internalError: (event) => {
      events.internalError(event)
      internal.inc()
    },
  })
}

function countRecords(
  counter: Counter<'partner' | 'outcome'>,
  { partner, accepted, refused, notApplied, unknown }: Readonly<BatchTally> & { readonly partner: string },
): void {
  const counts = { accepted, refused, not_applied: notApplied, unknown }
  for (const [outcome, count] of Object.entries(counts)) counter.inc({ partner, outcome }, count)
}
