import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

import type { BatchTally, Events } from './events.ts'

/** A call to V3 as far as its head came: `status` undefined where none did. */
export interface CallSeen {
  readonly kind: 'write' | 'batch' | 'read' | 'passThrough'
  readonly status: number | undefined
  readonly durationMs: number
}

/** What became of a call that asked the throttle for its turn. */
export interface TurnSeen {
  readonly priority: 'write' | 'read' | 'comparison'
  readonly waitedMs: number
  /** Undefined: it left. */
  readonly refused: 'full' | 'deadline' | 'gone' | undefined
}

/** A number, or one for each value of the gauge's label; the values must be few and known. */
export type GaugeReading = number | Readonly<Record<string, number>>

/**
 * The metrics of one adapter, in a registry of its own. Labels are the partner's id and words from fixed lists: no value of a
 * learner or a mark, no key, no path (product contract 8).
 */
export interface Metrics {
  /** The same events, counted as well as handed on. */
  counting(events: Events): Events
  readonly called: (call: CallSeen) => void
  readonly queued: (turn: TurnSeen) => void
  /** Adds a gauge that is read whenever the metrics are asked for. With `label` the reading has a number for each value. */
  addGauge(
    gauge: { readonly name: string; readonly help: string; readonly label?: string },
    read: () => GaugeReading | Promise<GaugeReading>,
  ): void
  /** The Prometheus text. The first call starts to observe the process as well. */
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90]

/** Creates the metrics; docs/operations.md says what each means. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> =>
    new Counter({ name: `markbridge_${name}`, help, labelNames, registers })
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
  ): Histogram<Label> =>
    new Histogram({ name: `markbridge_${name}_seconds`, help, labelNames, buckets: seconds, registers })

  const requests = counter('requests_total', 'Requests that were answered.', ['partner', 'kind', 'status'])
  const durations = histogram('request_duration', 'From a request to its answer.', ['partner', 'kind'])
  const records = counter('records_total', 'Records of V2 writes as they were first answered.', ['partner', 'outcome']) // prettier-ignore
  const replays = counter('batches_replayed_total', 'Batches that had come before.', ['partner'])
  const reused = counter('batch_ids_reused_total', 'Batches with the ids of another one.', ['partner'])
  const recovered = counter('records_recovered_total', 'Records that were finished without their client.', ['partner', 'outcome']) // prettier-ignore
  const unrecovered = counter('recovery_failures_total', 'Times that the background could not go on.', ['code']) // prettier-ignore
  const unmapped = counter('unmapped_fields_total', 'Members of records that no rule consumed.', ['partner'])
  const rows = counter('read_rows_total', 'Recorded marks in the answers to V2 reads.', ['partner'])
  const pages = counter('read_pages_total', 'Answers of V3 that were read for V2 reads.', ['partner'])
  const refusals = counter('requests_refused_total', 'Requests that were refused as a whole.', ['code'])
  const denials = counter('credentials_denied_total', 'Writes whose credentials V3 denied.', ['partner'])
  const failures = counter('pass_through_failures_total', 'Passed requests without a whole reply.', ['reason']) // prettier-ignore
  const internal = counter('internal_errors_total', 'Errors that nobody foresaw.', [])
  const calls = histogram('v3_call_duration', 'From a call to V3 to the head of its reply.', ['kind', 'status']) // prettier-ignore
  const waits = histogram('queue_wait', 'Time in the queue of calls that left.', ['priority'])
  const turnedAway = counter('queue_refused_total', 'Calls that left the queue unsent.', ['priority', 'reason']) // prettier-ignore

  const answered = (kind: string, partner: string, status: number, durationMs: number): void => {
    requests.inc({ partner, kind, status: statusClass(status) })
    durations.observe({ partner, kind }, durationMs / 1_000)
  }
  let observesProcess = false
  return {
    counting: (events) => ({
      ...events,
      batchAnswered: (event) => {
        events.batchAnswered(event)
        const { partner } = event
        answered('batch', partner, 200, event.durationMs)
        // The records of a batch that comes again were counted when they came first.
        if (event.replayed) {
          replays.inc({ partner })
          return
        }
        countRecords(records, event)
        unmapped.inc({ partner }, event.unmappedFields)
      },
      batchIdsReused: (event) => {
        events.batchIdsReused(event)
        reused.inc(event)
      },
      recovered: (event) => {
        events.recovered(event)
        countRecords(recovered, event)
      },
      recoveryFailed: (event) => {
        events.recoveryFailed(event)
        unrecovered.inc(event)
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
      credentialsDenied: (event) => {
        events.credentialsDenied(event)
        denials.inc({ partner: event.partner })
      },
      passThroughFailed: (event) => {
        events.passThroughFailed(event)
        failures.inc(event)
      },
      internalError: (event) => {
        events.internalError(event)
        internal.inc()
      },
    }),
    called: ({ kind, status, durationMs }) => {
      const labels = {
        kind: kind === 'passThrough' ? 'pass_through' : kind,
        status: status === undefined ? 'none' : statusClass(status),
      }
      calls.observe(labels, durationMs / 1_000)
    },
    queued: ({ priority, waitedMs, refused }) => {
      if (refused === undefined) waits.observe({ priority }, waitedMs / 1_000)
      else turnedAway.inc({ priority, reason: refused })
    },
    addGauge: ({ name, help, label }, read) => {
      const gauge = new Gauge({
        name: `markbridge_${name}`,
        help,
        labelNames: label === undefined ? [] : [label],
        registers,
        collect: async () => {
          const reading = await read()
          if (typeof reading === 'number') gauge.set(reading)
          else
            for (const [value, count] of Object.entries(reading)) gauge.set({ [label ?? '']: value }, count)
        },
      })
    },
    render: async () => {
      if (!observesProcess) collectDefaultMetrics({ register: registry })
      observesProcess = true
      return { contentType: registry.contentType, text: await registry.metrics() }
    },
  }
}

function countRecords(
  counter: Counter<'partner' | 'outcome'>,
  { partner, accepted, refused, notApplied, unknown }: Readonly<BatchTally> & { readonly partner: string },
): void {
  const counts = { accepted, refused, not_applied: notApplied, unknown }
  for (const [outcome, count] of Object.entries(counts)) counter.inc({ partner, outcome }, count)
}

/** `2xx`, `4xx` and so on; 429 has a class of its own, since it is the service's rate and no fault of a request. */
function statusClass(status: number): string {
  return status === 429 ? '429' : `${Math.floor(status / 100)}xx`
}
