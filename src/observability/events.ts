import type { Logger } from 'pino'
import { Registry } from 'prom-client'

import { createInstruments, type Instruments, statusClass, statusClasses, unlisted } from './instruments.ts'

/** The number of records of a batch with each outcome. The four numbers add up to the records of the batch. */
export interface BatchTally {
  accepted: number
  refused: number
  notApplied: number
  unknown: number
  /** The reason of the last record that was not applied or whose outcome is unknown, or `undefined` if no reason is known. */
  reason?: string
}

export interface BatchAnswered extends Readonly<BatchTally> {
  readonly partner: string
  readonly records: number
  readonly changesets: number
  /** False if the client got a single 200 without parts, because the ids in the header and the body of its batch differ (batch-wire 3). */
  readonly outcomesShown: boolean
  /** The number of record members that no translation rule used. */
  readonly unmappedFields: number
  /** The number of values in a form that V2 accepts and V3 does not, such as a number as text or a GUID in braces. */
  readonly convertedFields: number
  /** True for a resent batch. Records that were applied before were not posted again. */
  readonly replayed: boolean
  readonly durationMs: number
  /** The longest time in milliseconds that a call of this batch waited in the queue of the rate limit. */
  readonly queuedMs: number
}

interface Recovered extends Readonly<BatchTally> {
  readonly partner: string
  readonly records: number
}

export interface ReadAnswered {
  readonly partner: string
  /** `collection` for a page of records, `record` for one record that was read by its id. */
  readonly kind: 'collection' | 'record'
  /** The status of the reply, or 499 if the client disconnected before the reply. */
  readonly status: number
  readonly rows: number
  /** The number of V3 pages that were read for the reply. */
  readonly pages: number
  readonly durationMs: number
  /** The total time in milliseconds that the calls of this read waited in the queue of the rate limit. */
  readonly queuedMs: number
}

/** A request that was passed through to V3. Reported once the last byte of the reply was sent. */
export interface PassedThrough {
  readonly partner: string
  /** The method of the request. Every other method counts as `other`. */
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'other'
  /** The status of the reply, or 499 if the client disconnected before the reply. */
  readonly status: number
  readonly durationMs: number
  readonly queuedMs: number
}

interface StageChanged {
  readonly partner: string
  /** The previous stage, or `null` when the instance starts. */
  readonly from: string | null
  readonly to: string
  readonly percent: number
  readonly revision: number
  /** The source of the stage: the journal (`store`), or the stage file that an earlier process wrote (`kept`). */
  readonly source: 'store' | 'kept'
}

/** The counts on which a guard bases its finding that V3 does worse than V2 for a partner. */
interface GuardFinding {
  readonly partner: string
  /**
   * The number of writes on V3 that the guards have counted since V3 began to do worse. `v2` is the number of writes on V2 in the same
   * time.
   */
  readonly v3: number
  readonly v3Bad: number
  readonly v2: number
  readonly v2Bad: number
}

/** The failed writes since the last event of this kind: V3 did not answer them, or answered with an error of its own. */
export interface WritesFailing {
  readonly partner: string
  readonly batches: number
  /** The number of records of these batches that were not applied. */
  readonly notApplied: number
  readonly unknown: number
  readonly reason?: string
}

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
 * The events of the adapter. Each event writes a log line and adds to counters. The parameter types are the allow-list of what may be
 * logged (product contract 8): counts, codes and the ids of partners. They never contain the id of a learner or mark, a credential, or text
 * from a client or upstream.
 */
export type Events = ReturnType<typeof createEvents>

/**
 * Creates the events. Without `instruments`, the events count in a new registry. `onEvent` receives the message and fields of each log
 * line.
 */
export function createEvents(
  logger: Logger,
  instruments: Instruments = createInstruments(new Registry()),
  onEvent?: (message: string, fields: object) => void,
) {
  const { counter, timer } = instruments
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
  const plain = (level: Level, message: string, count?: () => void) => (): void => {
    logger[level](message)
    onEvent?.(message, {})
    count?.()
  }
  const sum = <Field extends string>(name: string, help: string, field: Field) => {
    const add = counter(name, help, { partner })
    return (fields: OfPartner & Readonly<Record<Field, number>>): void => add(fields, fields[field])
  }
  const tally = (name: string, help: string) => {
    const add = counter(name, help, { partner, outcome: outcomes })
    return (fields: OfPartner & Readonly<BatchTally>): void => {
      const { accepted, refused, notApplied, unknown } = fields
      const counts = { accepted, refused, not_applied: notApplied, unknown }
      for (const [outcome, count] of Object.entries(counts)) add({ partner: fields.partner, outcome }, count)
    }
  }
  const requests = counter('requests_total', 'Requests that were answered by V3 or by the adapter itself, and not by V2.', { partner, kind: ['batch', 'read', 'pass_through'], status: statusClasses }) // prettier-ignore
  const durations = timer('request_duration', 'Time from a request to its answer.', {
    partner,
    kind: unlisted,
  })
  const answered =
    (kind: 'batch' | 'read' | 'pass_through') =>
    (event: OfPartner & { readonly status?: number; readonly durationMs: number }): void => {
      const series = { partner: event.partner, kind }
      requests({ ...series, status: statusClass(event.status ?? 200) })
      durations(series, event.durationMs)
    }
  const replayed = counter('batches_replayed_total', 'Resent batches that were answered from the journal.', { partner }) // prettier-ignore
  const firstOutcomes = [
    tally('records_total', 'Records of V2 writes by their first outcome.'),
    sum('unmapped_fields_total', 'Record fields that no translation rule covers.', 'unmappedFields'),
    sum(
      'converted_fields_total',
      'Record fields in a form that V2 accepts and V3 does not.',
      'convertedFields',
    ),
  ]
  const crowded = counter(
    'crowded_connections_total',
    'Connections that were closed at the limit of open files.',
    {},
  )
  const leasesLost = counter(
    'journal_leases_lost_total',
    'Number of times that this instance lost its lease.',
    {},
  )
  const stageChanges = counter('stage_changes_total', 'Changes of stages that took effect in this process.', { partner, stage: stages }) // prettier-ignore
  return {
    // Clients

    // The records of a resent batch are not counted again, because they were counted when the batch was first answered.
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
    /** Reported when a batch has the ids of an earlier batch but other content. The adapter treats it as a new batch. */
    batchIdsReused: event('warn', 'batch ids reused', counter('batch_ids_reused_total', 'Batches with the ids of an earlier batch and different content.', { partner })), // prettier-ignore
    /**
     * Reported when V3 refuses a lookup of attendance codes or does not support it. `status` is the status of V3's reply. The letters in
     * `reads.unmarkedCodes` then have no effect for the client.
     */
    unmarkedCodesUnknown: event<OfPartner & { readonly status: number }>('warn', 'letters in reads.unmarkedCodes have no effect', counter('unmarked_codes_unknown_total', 'Lookups of attendance codes that V3 refused or does not support.', { partner })), // prettier-ignore
    /** Reported when a client is disconnected, because it sent its headers or body too slowly, or read its reply too slowly. */
    slowClient: event('warn', 'slow client cut off', counter('slow_clients_total', 'Clients that were disconnected for being too slow.', { phase: ['headers', 'upload', 'reply'] })), // prettier-ignore

    /**
     * Reported when a client does not speak TLS, offers no TLS version or cipher of the listener, or does not complete the handshake in
     * time.
     */
    handshakeFailed: event<{ readonly reason: 'plainHttp' | 'timeout' | 'other'; readonly code: string }>('warn', 'TLS handshake failed', counter('handshake_failures_total', 'Connections of clients that were closed before their TLS handshake was complete.', { reason: ['plainHttp', 'timeout', 'other'] })), // prettier-ignore
    /**
     * Reported at the limit of open files. `idle` connections without a request were closed, and `refused` new connections were closed at
     * once.
     */
    connectionsCrowded: event<{ readonly limit: number; readonly idle: number; readonly refused: number }>('warn', 'connections at the limit of open files', (crowd) => crowded({}, crowd.idle + crowd.refused)), // prettier-ignore
    /**
     * Reported when the bytes after a request are not HTTP. The adapter sent the `owed` replies, then `status`, and closed the connection.
     */
    laterBytesRefused: event<{ readonly status: number; readonly owed: number }>('warn', 'bytes after a request refused', counter('later_bytes_refused_total', 'Connections that were closed for invalid bytes after a request.', {})), // prettier-ignore

    // Upstreams
    credentialsDenied: event<OfPartner & { readonly status: number }>('warn', 'credentials denied by the upstream', counter('credentials_denied_total', 'Writes whose credentials V3 denied.', { partner })), // prettier-ignore
    /** Reported when V3 or the token endpoint rejects the partner's own credentials: its subscription key, token or client credentials. */
    ownCredentialsDenied: event('error', 'own credentials denied by V3', counter('own_credentials_denied_total', 'Calls for which V3 or its token endpoint denied credentials of the configuration.', { partner, what: ['subscriptionKey', 'token'] })), // prettier-ignore
    /** Reported when the token endpoint of a partner is unreachable, or when its response has no token. */
    tokenFailed: event('error', 'no token for V3', counter('token_failures_total', 'Requests to the token endpoint of a partner that brought neither a token nor a rejection.', { partner })), // prettier-ignore
    passThroughFailed: event('warn', 'pass-through failed', counter('pass_through_failures_total', 'Passed-through requests without a complete reply.', { reason: ['unreachable', 'brokenReply'] })), // prettier-ignore
    /** Reported when V2's reply to a request is missing or incomplete. `lost` means that at least some of the request had been sent. */
    relayFailed: event('warn', 'relay failed', counter('relay_failures_total', 'Requests to V2 without a complete reply.', { reason: ['unreachable', 'lost', 'brokenReply'] })), // prettier-ignore
    /** Reported when a write is sent to V2 without an entry in the journal, because the journal did not answer in time. */
    relayedUnrecorded: event('warn', 'relayed unrecorded', counter('stage_unrecorded_total', 'Writes that were relayed to V2 without a record in the journal.', { partner })), // prettier-ignore
    /**
     * Reported when an outbound proxy opens no connection, so that the request is not sent. `code` is `PROXY_<status>` or a connection
     * error code.
     */
    proxyFailed: event<{ readonly upstream: 'v2' | 'v3'; readonly proxy: string; readonly code: string }>('warn', 'outbound proxy failed', counter('proxy_failures_total', 'Connections that an outbound proxy did not open.', { upstream: ['v2', 'v3'] })), // prettier-ignore
    /** Reported for the first failed write of a partner, and then once a minute while writes fail. */
    writesFailing: event<WritesFailing>('warn', 'writes fail on V3'),

    // Journal and recovery
    recovered: event<Recovered>('info', 'records recovered', tally('records_recovered_total', 'Attempts by recovery to finish a record, by result.')), // prettier-ignore
    /**
     * Reported when recovery must wait to finish open records, for credentials from their client or for the partner to be configured again.
     */
    recoveryWaits: event<OfPartner & { readonly missing: 'credentials' | 'partner' }>('warn', 'recovery waits'), // prettier-ignore
    recoveryFailed: event('error', 'recovery failed', counter('recovery_failures_total', 'Failures of recovery.', { code: unlisted })), // prettier-ignore
    /** Reported when the journal becomes unavailable. The adapter answers writes with 503 until the journal recovers. */
    journalFailed: event<{ readonly reason: string }>('error', 'journal failed', counter('journal_failures_total', 'Number of times that the journal became unavailable.', {})), // prettier-ignore
    journalRecovered: plain('info', 'journal recovered'),
    /** Reported when the lease of this instance has ended. Other instances may have finished its batches. */
    journalLeaseLost: plain('error', 'journal lease lost', () => leasesLost({})),

    // Stages, guards and comparison
    stageChanged: event<StageChanged>('info', 'stage changed', (change) => {
      if (change.from !== null) stageChanges({ partner: change.partner, stage: change.to })
    }),
    /** Reported when the last read of the stages is too old. Writes that V3 serves are refused until the stages are read again. */
    stagesStale: plain('error', 'stages cannot be read'),
    stagesFresh: plain('info', 'stages can be read again'),
    /** Reported when the audit trail of stages was altered, or is older than this instance knows. No partner can then move forward. */
    trailDamaged: plain('error', 'audit trail of stages damaged'),
    /** Reported when the stage file cannot be written. This instance then acknowledges no change of a stage, so no step forward commits. */
    stagesNotKept: plain('error', 'stages cannot be kept in their file'),
    guardActed: event<GuardFinding>('error', 'guard acted', counter('stage_guard_actions_total', 'Number of times that guards moved a partner back to V2.', { partner })), // prettier-ignore
    /** Reported once per revision of the stage if guards would have moved a partner back to V2, but are configured only to warn. */
    guardWarned: event<GuardFinding>('error', 'guard warns', counter('stage_guard_warnings_total', 'Number of times that guards found V3 worse than V2 but only warned.', { partner })), // prettier-ignore
    /** Reported when the data of the console cannot be read or written. The pages are out of date until the next success. */
    consoleFailed: plain('warn', 'console data unavailable'),

    // The process
    /**
     * Reported for the first of several failures in a row of the same periodic work, whose name is `work`. The work still begins again on
     * schedule.
     */
    workFailed: event<{ readonly work: string; readonly code: string }>('error', 'periodic work failed', counter('work_failures_total', 'Number of times that periodic work began to fail.', { work: unlisted })), // prettier-ignore
    /**
     * Reported for an unexpected error. The event has the class and the stack of the error, but not its message, which could contain data.
     */
    internalError: event<{ readonly errorName: string; readonly stack: readonly string[] }>('error', 'internal error', counter('internal_errors_total', 'Unexpected errors.', {})), // prettier-ignore
    /**
     * Reported when the drain time of a shutdown has ended. `requests` connections were closed before their clients had read the replies.
     */
    drainExpired: event<{ readonly requests: number }>('warn', 'connections closed before their replies were read'), // prettier-ignore
    /** Reported when the adapter accepts requests. `proxies` lists the outbound proxies without credentials, if there are any. */
    started: event<{ readonly url: string; readonly proxies?: readonly string[] }>('info', 'started'),
    /**
     * Reported when a new configuration is in use. The lists have ids of partners; `needsRestart` has the keys that apply only after a
     * restart.
     */
    configReloaded: event<{
      readonly revision: number
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
      readonly needsRestart: readonly string[]
    }>(({ needsRestart }) => (needsRestart.length === 0 ? 'info' : 'warn'), 'config reloaded'),
    /** Reported for a setting that is valid but risky. The text names keys, ids of partners and the remedy, but never a secret. */
    configWarned: event<{ readonly warning: string }>('warn', 'configuration warning'),
    /** Reported when Node.js or a library issues a warning. Its text is not logged, because it may contain data. */
    runtimeWarned: event<{ readonly warning: string; readonly code: string | undefined }>(
      'warn',
      'runtime warning',
    ),
    /**
     * Reported when a changed configuration is invalid, so that the previous one stays in use. The texts name keys and rules, but never a
     * value.
     */
    configRefused: event<{ readonly count: number; readonly faults: readonly ConfigFault[] }>('error', 'config refused'), // prettier-ignore
    stopped: plain('info', 'stopped'),
    workerStarted: event<{ readonly worker: number; readonly pid: number }>('info', 'worker started'),
    /** Reported when a worker has ended. A new worker starts after `restartMs`, or none if `restartMs` is `null`. */
    workerEnded: event<{
      readonly worker: number
      readonly status: number | null
      readonly signal: string | null
      readonly restartMs: number | null
    }>(({ restartMs }) => (restartMs === null ? 'info' : 'error'), 'worker ended'),
  }
}

/** Returns the first twelve frames of an error's stack. Removes the message first, because its lines could look like frames. */
export function framesOf(error: Error): string[] {
  return (error.stack ?? '')
    .replace(error.message, () => '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim())
    .slice(0, 12)
}
