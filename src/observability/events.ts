import type { Logger } from 'pino'
import { Registry } from 'prom-client'

import { createInstruments, type Instruments, statusClass, statusClasses, unlisted } from './instruments.ts'

/** The number of records of a batch with each outcome; the sum is the number of its records. */
export interface BatchTally {
  accepted: number
  refused: number
  notApplied: number
  unknown: number
  /** Why the last one of those that were not applied or are unknown is so, as far as V3 was asked: a reason of its outcome. */
  reason?: string
}

/** A batch that was answered. */
export interface BatchAnswered extends Readonly<BatchTally> {
  readonly partner: string
  readonly records: number
  readonly changesets: number
  /** False when the client got the single 200 of the id rule: the outcome is hidden from it (batch-wire 3). */
  readonly outcomesShown: boolean
  /** Members of records that no rule consumed. */
  readonly unmappedFields: number
  /** Members of records in another form than JSON's, which V2's parser reads as well. */
  readonly convertedFields: number
  /** The batch is a repetition: records that were applied before were not sent again. */
  readonly replayed: boolean
  readonly durationMs: number
  /** The longest wait of a call of the batch in the queue of the rate limit. */
  readonly queuedMs: number
}

/** Records of one batch that were finished without their client. */
interface Recovered extends Readonly<BatchTally> {
  readonly partner: string
  readonly records: number
}

/** A V2 read that was answered, with marks or with a refusal. */
export interface ReadAnswered {
  readonly partner: string
  /** A page of records, or one record by its id. */
  readonly kind: 'collection' | 'record'
  /** 499: the client disconnected before the reply. */
  readonly status: number
  /** Recorded marks in the answer. */
  readonly rows: number
  /** Replies of V3 that were read for it. */
  readonly pages: number
  readonly durationMs: number
  /** The total wait of its calls in the queue of the rate limit. */
  readonly queuedMs: number
}

/** A request that was passed through to V3, to its last byte. */
export interface PassedThrough {
  readonly partner: string
  /** `other` for any other method. */
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'other'
  /** The status that the client got; 499: it disconnected before the reply. */
  readonly status: number
  readonly durationMs: number
  readonly queuedMs: number
}

/** A partner is served by another stage or share. */
interface StageChanged {
  readonly partner: string
  /** Null: at the start of this instance. */
  readonly from: string | null
  readonly to: string
  readonly percent: number
  readonly revision: number
  /** `kept`: as an earlier process read it. */
  readonly source: 'store' | 'kept'
}

/** The figures by which V3 does worse than V2 for a partner. */
interface GuardFinding {
  readonly partner: string
  /** Writes of either side that were counted since V3 has been worse. */
  readonly v3: number
  readonly v3Bad: number
  readonly v2: number
  readonly v2Bad: number
}

/** Writes that V3 did not answer, or answered with an error of its own, since the last such event. */
export interface WritesFailing {
  readonly partner: string
  readonly batches: number
  /** Records of them. */
  readonly notApplied: number
  readonly unknown: number
  /** The most frequent one of the batches. */
  readonly reason?: string
}

/** A fault of a configuration, with its place in the file where it has one. */
interface ConfigFault {
  readonly code: string
  readonly message: string
  readonly target?: string
  readonly line?: number
  readonly column?: number
}

type Level = 'info' | 'warn' | 'error'
interface OfPartner {
  readonly partner: string
}

const partner = unlisted
const outcomes: readonly string[] = ['accepted', 'refused', 'not_applied', 'unknown']
const stages: readonly string[] = ['legacy', 'shadow', 'canary', 'v3', 'complete']

/**
 * The events of the adapter: what each writes to the log, and the counters that it adds to. The parameters are the allow-list of
 * what may be logged: counts, codes and the partner's id; no id of a learner, no mark, no credential, no text of a client or of
 * the upstream (product contract 8).
 */
export type Events = ReturnType<typeof createEvents>

/** Creates the events over a logger; without `instruments` nothing is counted. `onEvent` takes what is logged. */
export function createEvents(
  logger: Logger,
  instruments: Instruments = createInstruments(new Registry()),
  onEvent?: (message: string, fields: object) => void,
) {
  const { counter, timer } = instruments
  /** An event with fields. */
  const event =
    <Event extends object>(
      level: Level | ((event: Event) => Level),
      message: string,
      ...counts: readonly ((event: Event) => void)[]
    ) =>
    (event: Event): void => {
      const fields: object = event
      logger[typeof level === 'string' ? level : level(event)](fields, message)
      onEvent?.(message, fields)
      for (const count of counts) count(event)
    }
  /** An event without fields. */
  const plain = (level: Level, message: string, count?: () => void) => (): void => {
    logger[level](message)
    onEvent?.(message, {})
    count?.()
  }
  /** Adds the number in a field. */
  const sum = <Field extends string>(name: string, help: string, field: Field) => {
    const add = counter(name, help, { partner })
    return (fields: OfPartner & Readonly<Record<Field, number>>): void => add(fields, fields[field])
  }
  /** Adds the records of each outcome. */
  const tally = (name: string, help: string) => {
    const add = counter(name, help, { partner, outcome: outcomes })
    return (fields: OfPartner & Readonly<BatchTally>): void => {
      const { accepted, refused, notApplied, unknown } = fields
      const counts = { accepted, refused, not_applied: notApplied, unknown }
      for (const [outcome, count] of Object.entries(counts)) add({ partner: fields.partner, outcome }, count)
    }
  }
  const requests = counter('requests_total', 'Requests that were answered.', { partner, kind: ['batch', 'read', 'pass_through'], status: statusClasses }) // prettier-ignore
  const durations = timer('request_duration', 'From a request to its answer.', { partner, kind: unlisted })
  const answered =
    (kind: 'batch' | 'read' | 'pass_through') =>
    (event: OfPartner & { readonly status?: number; readonly durationMs: number }): void => {
      const series = { partner: event.partner, kind }
      requests({ ...series, status: statusClass(event.status ?? 200) })
      durations(series, event.durationMs)
    }
  const replayed = counter('batches_replayed_total', 'Repeated batches that were answered from the journal.', { partner }) // prettier-ignore
  const firstOutcomes = [
    tally('records_total', 'Records of V2 writes by their first outcome.'),
    sum('unmapped_fields_total', 'Record fields without a rule.', 'unmappedFields'),
    sum('converted_fields_total', 'Record fields that were read from another form.', 'convertedFields'),
  ]
  const crowded = counter(
    'crowded_connections_total',
    'Connections that were closed at the limit of open files.',
    {},
  )
  const leasesLost = counter('journal_leases_lost_total', 'Times that this instance lost its lease.', {})
  const stageChanges = counter('stage_changes_total', 'Changes of stages that took effect here.', { partner, stage: stages }) // prettier-ignore
  return {
    // Clients
    // The records of a repeated batch were counted with its first answer.
    batchAnswered: event<BatchAnswered>('info', 'batch answered', answered('batch'), (batch) => {
      if (batch.replayed) replayed(batch)
      else for (const count of firstOutcomes) count(batch)
    }),
    readAnswered: event<ReadAnswered>(
      'info',
      'read answered',
      answered('read'),
      sum('read_rows_total', 'Recorded marks in replies to V2 reads.', 'rows'),
      sum('read_pages_total', 'V3 replies that were read for V2 reads.', 'pages'),
    ),
    passedThrough: event<PassedThrough>('info', 'passed through', answered('pass_through')),
    requestRefused: event<{ readonly code: string; readonly status: number; readonly partner: string | undefined }>(
      'warn',
      'request refused',
      counter('requests_refused_total', 'Requests that were refused as a whole.', { code: unlisted }),
    ), // prettier-ignore
    /** A batch had the ids of an earlier one but other bytes, and was treated as a new batch. */
    batchIdsReused: event('warn', 'batch ids reused', counter('batch_ids_reused_total', 'Batches with the ids of an earlier batch and other content.', { partner })), // prettier-ignore
    /** V3 answered its code lookup with this status: letters in `reads.unmarkedCodes` have no effect for a client of the partner. */
    unmarkedCodesUnknown: event<OfPartner & { readonly status: number }>('warn', 'letters in reads.unmarkedCodes have no effect', counter('unmarked_codes_unknown_total', 'Code lookups that V3 refused or does not have.', { partner })), // prettier-ignore
    /** A client was disconnected because it sent its headers or body, or read its reply, too slowly. */
    slowClient: event('warn', 'slow client cut off', counter('slow_clients_total', 'Clients that were disconnected for being too slow.', { phase: ['headers', 'upload', 'reply'] })), // prettier-ignore

    /** The process may not open more files: connections of clients were closed, `idle` ones without a request, or `refused` new ones. */
    connectionsCrowded: event<{ readonly limit: number; readonly idle: number; readonly refused: number }>('warn', 'connections at the limit of open files', (crowd) => crowded({}, crowd.idle + crowd.refused)), // prettier-ignore
    /** Bytes after a request were no request that is served; they were answered with `status` after `owed` replies, and the connection closed. */
    laterBytesRefused: event<{ readonly status: number; readonly owed: number }>('warn', 'bytes after a request refused', counter('later_bytes_refused_total', 'Connections that were closed for bytes after a request whose reply was still owed.', {})), // prettier-ignore

    // Upstreams
    credentialsDenied: event<OfPartner & { readonly status: number }>('warn', 'credentials denied by the upstream', counter('credentials_denied_total', 'Writes whose credentials V3 denied.', { partner })), // prettier-ignore
    /** V3 denied what the configuration lends a partner: its subscription key, or the token of its client credentials. */
    ownCredentialsDenied: event('error', 'own credentials denied by V3', counter('own_credentials_denied_total', 'Calls that V3 denied for the key or the client that the configuration has.', { partner, what: ['subscriptionKey', 'token'] })), // prettier-ignore
    passThroughFailed: event('warn', 'pass-through failed', counter('pass_through_failures_total', 'Passed-through requests without a complete reply.', { reason: ['unreachable', 'brokenReply'] })), // prettier-ignore
    /** A request to V2 got no whole reply; `lost`: it had left, or a part of it. */
    relayFailed: event('warn', 'relay failed', counter('relay_failures_total', 'Requests to V2 without a complete reply.', { reason: ['unreachable', 'lost', 'brokenReply'] })), // prettier-ignore
    /** V2 was sent a write that the journal does not know, since it could not be reached in time. */
    relayedUnrecorded: event('warn', 'relayed unrecorded', counter('stage_unrecorded_total', 'Writes that V2 was sent and the journal does not know.', { partner })), // prettier-ignore
    /** V3 cannot be reached or fails: at the first write of a partner, then once a minute as long as it does. */
    writesFailing: event<WritesFailing>('warn', 'writes fail on V3'),

    // Journal and recovery
    /** The background work finished records of a batch. */
    recovered: event<Recovered>('info', 'records recovered', tally('records_recovered_total', 'Records that the background work finished.')), // prettier-ignore
    /** Open records of a batch cannot be finished until their client sends credentials, or their partner is configured again. */
    recoveryWaits: event<OfPartner & { readonly missing: 'credentials' | 'partner' }>('warn', 'recovery waits'), // prettier-ignore
    /** The background work failed and will be retried. */
    recoveryFailed: event('error', 'recovery failed', counter('recovery_failures_total', 'Failures of the background work.', { code: unlisted })), // prettier-ignore
    /** The journal cannot be written or read: writes are answered 503 until it recovers. */
    journalFailed: event<{ readonly reason: string }>('error', 'journal failed', counter('journal_failures_total', 'Times that the journal became unavailable.', {})), // prettier-ignore
    journalRecovered: plain('info', 'journal recovered'),
    /** The lease of this instance has expired; other instances may have finished its batches. */
    journalLeaseLost: plain('error', 'journal lease lost', () => leasesLost({})),

    // Stages, guards and comparison
    /** This instance serves a partner by another stage from now on. */
    stageChanged: event<StageChanged>('info', 'stage changed', (change) => {
      if (change.from !== null) stageChanges({ partner: change.partner, stage: change.to })
    }),
    /** The stages were not read for as long as they count: writes that V3 serves are refused. */
    stagesStale: plain('error', 'stages cannot be read'),
    stagesFresh: plain('info', 'stages are read again'),
    /** The audit trail of stages is not as it was written, or is older than this instance knows: no stage moves forward. */
    trailDamaged: plain('error', 'audit trail of stages damaged'),
    /** The last stages could not be written to their file: changes are not acknowledged, so that none forward is made. */
    stagesNotKept: plain('error', 'stages cannot be kept in their file'),
    /** The guards have taken a partner back: this instance is the one that did. */
    guardActed: event<GuardFinding>('error', 'guard acted', counter('stage_guard_actions_total', 'Partners that guards took back.', { partner })), // prettier-ignore
    /** The guards would have taken a partner back, and are set to warn: once for each stage and share. */
    guardWarned: event<GuardFinding>('error', 'guard warns', counter('stage_guard_warnings_total', 'Times that guards would have taken a partner back and only warned.', { partner })), // prettier-ignore
    /** The console's data cannot be read or written: its pages are out of date until they can. */
    consoleFailed: plain('warn', 'console data unavailable'),

    // The process
    /** Periodic work fails: at the first of several failures in a row. What it should have kept may be lost, and its next turn takes place all the same. */
    workFailed: event<{ readonly work: string; readonly code: string }>('error', 'periodic work failed', counter('work_failures_total', 'Times that periodic work began to fail.', { work: unlisted })), // prettier-ignore
    /** An unexpected error: its class and stack, which hold no data, but not its message. */
    internalError: event<{ readonly errorName: string; readonly stack: readonly string[] }>('error', 'internal error', counter('internal_errors_total', 'Unexpected errors.', {})), // prettier-ignore
    /** The drain time was over at shutdown; `requests` connections were closed before their replies were read. */
    drainExpired: event<{ readonly requests: number }>('warn', 'connections closed before their replies were read'), // prettier-ignore
    started: event<{ readonly url: string }>('info', 'started'),
    /** Another configuration is in use: ids of partners, and paths of keys that take effect with the next start. */
    configReloaded: event<{
      readonly revision: number
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
      readonly needsRestart: readonly string[]
    }>(({ needsRestart }) => (needsRestart.length === 0 ? 'info' : 'warn'), 'config reloaded'),
    /** A setting is valid but risky; the text names keys, ids of partners and the remedy, never a secret. */
    configWarned: event<{ readonly warning: string }>('warn', 'configuration warning'),
    /** Node.js or a library warns of something; its text is left out, since nobody here wrote it. */
    runtimeWarned: event<{ readonly warning: string; readonly code: string | undefined }>(
      'warn',
      'runtime warning',
    ),
    /** A configuration was not taken and the one before stays; texts name keys and rules, never a value. */
    configRefused: event<{ readonly count: number; readonly faults: readonly ConfigFault[] }>('error', 'config refused'), // prettier-ignore
    stopped: plain('info', 'stopped'),
    /** One of several processes on the same port was started. */
    workerStarted: event<{ readonly worker: number; readonly pid: number }>('info', 'worker started'),
    /** A worker ended; `restartMs` later another replaces it, or none does. */
    workerEnded: event<{
      readonly worker: number
      readonly status: number | null
      readonly signal: string | null
      readonly restartMs: number | null
    }>(({ restartMs }) => (restartMs === null ? 'info' : 'error'), 'worker ended'),
  }
}

/** The frames of a stack without the message, whose lines could be mistaken for frames. */
export function framesOf(error: Error): string[] {
  return (error.stack ?? '')
    .replace(error.message, () => '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim())
    .slice(0, 12)
}
