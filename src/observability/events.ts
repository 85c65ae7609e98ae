import type { Logger } from 'pino'

/** The number of records of a batch with each outcome; the sum is the number of its records. */
export interface BatchTally {
  accepted: number
  refused: number
  notApplied: number
  unknown: number
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
export interface Recovered extends Readonly<BatchTally> {
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
export interface StageChanged {
  readonly partner: string
  /** Null: at the start of this instance. */
  readonly from: string | null
  readonly to: string
  readonly percent: number
  readonly revision: number
  /** `kept`: as an earlier process read it. */
  readonly source: 'store' | 'kept' | 'file' | 'override'
}

/** An action of the guards of a partner, with the figures that led to it. */
export interface GuardActed {
  readonly partner: string
  readonly action: 'notify' | 'hold' | 'back'
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
}

/** A fault of a configuration, with its place in the file where it has one. */
export interface ConfigFault {
  readonly code: string
  readonly message: string
  readonly target?: string
  readonly line?: number
  readonly column?: number
}

/**
 * The events of the adapter, one function each. The parameters are the allow-list of what may be logged: counts, codes and the
 * partner's id; no id of a learner, no mark, no credential, no text of a client or of the upstream (product contract 8).
 */
export interface Events {
  batchAnswered(event: BatchAnswered): void
  readAnswered(event: ReadAnswered): void
  passedThrough(event: PassedThrough): void
  requestRefused(event: {
    readonly code: string
    readonly status: number
    readonly partner: string | undefined
  }): void
  /** A batch had the ids of an earlier one but other bytes, and was treated as a new batch. */
  batchIdsReused(event: { readonly partner: string }): void
  /** V3 answered its code lookup with this status: letters in `reads.unmarkedCodes` have no effect for a client of the partner. */
  unmarkedCodesUnknown(event: { readonly partner: string; readonly status: number }): void
  /** The background work finished records of a batch. */
  recovered(event: Recovered): void
  /** Open records of a batch cannot be finished until their client sends credentials, or their partner is configured again. */
  recoveryWaits(event: { readonly partner: string; readonly missing: 'credentials' | 'partner' }): void
  /** The background work failed and will be retried. */
  recoveryFailed(event: { readonly code: string }): void
  /** The journal cannot be written or read: writes are answered 503 until it recovers. */
  journalFailed(event: { readonly reason: string }): void
  journalRecovered(): void
  /** The lease of this instance has expired; other instances may have finished its batches. */
  journalLeaseLost(): void
  /** Damaged rows were found at the start; new records are read back before they are posted. */
  journalRowsDamaged(event: { readonly batches: number }): void
  /** A client was disconnected because it sent its headers or body, or read its reply, too slowly. */
  slowClient(event: { readonly phase: 'headers' | 'upload' | 'reply' }): void
  /** This instance serves a partner by another stage from now on. */
  stageChanged(event: StageChanged): void
  /** The stages were not read for as long as they count: writes that V3 serves are refused. */
  stagesStale(): void
  stagesFresh(): void
  /** The audit trail of stages is not as it was written, or is older than this instance knows: no stage moves forward. */
  trailDamaged(): void
  /** The last stages could not be written to their file: changes are not acknowledged, so that none forward is made. */
  stagesNotKept(): void
  /** The guards of a partner have acted: this instance is the one that did. */
  guardActed(event: GuardActed): void
  /** V3 cannot be reached or fails: at the first write of a partner, then once a minute as long as it does. */
  writesFailing(event: WritesFailing): void
  /** The evidence about a partner cannot be read or kept: its guards do nothing until it can. */
  guardsFailed(event: { readonly partner: string; readonly code: string }): void
  /** What was seen of a partner cannot be kept: the advice on its next step lacks it. */
  seenNotKept(event: { readonly partner: string; readonly code: string }): void
  /** What comparison found cannot be kept as evidence; it counts as not compared. Partner empty: keys past their time cannot be destroyed. */
  evidenceNotKept(event: { readonly partner: string; readonly code: string }): void
  /** V3 denied what the configuration lends a partner: its subscription key, or the token of its client credentials. */
  ownCredentialsDenied(event: { readonly partner: string; readonly what: 'subscriptionKey' | 'token' }): void
  credentialsDenied(event: { readonly status: number; readonly partner: string }): void
  passThroughFailed(event: { readonly reason: 'unreachable' | 'brokenReply' }): void
  /** A request to V2 got no whole reply; `lost`: it had left, or a part of it. */
  relayFailed(event: { readonly reason: 'unreachable' | 'lost' | 'brokenReply' }): void
  /** V2 was sent a write that the journal does not know, since it could not be reached in time. */
  relayedUnrecorded(event: { readonly partner: string }): void
  /** A recording could not be written: nothing more is recorded of the partner. `code`: of the file system, such as ENOSPC. */
  recordingStopped(event: { readonly partner: string; readonly code: string }): void
  /** An unexpected error: its class and stack, which hold no data, but not its message. */
  internalError(event: { readonly errorName: string; readonly stack: readonly string[] }): void
  /** The drain time was over at shutdown; `requests` connections were closed before their replies were read. */
  drainExpired(event: { readonly requests: number }): void
  started(event: { readonly url: string }): void
  /** Another configuration is in use: ids of partners, and paths of keys that take effect with the next start. */
  configReloaded(event: {
    readonly revision: number
    readonly added: readonly string[]
    readonly removed: readonly string[]
    readonly changed: readonly string[]
    readonly needsRestart: readonly string[]
  }): void
  /** A configuration was not taken and the one before stays; texts name keys and rules, never a value. */
  configRefused(event: { readonly count: number; readonly faults: readonly ConfigFault[] }): void
  stopped(): void
  /** One of several processes on the same port was started. */
  workerStarted(event: { readonly worker: number; readonly pid: number }): void
  /** A worker ended; `restartMs` later another replaces it, or none does. */
  workerEnded(event: {
    readonly worker: number
    readonly status: number | null
    readonly signal: string | null
    readonly restartMs: number | null
  }): void
}

/** Creates the events over a logger. */
export function createEvents(logger: Logger): Events {
  return {
    batchAnswered: (event) => logger.info(event, 'batch answered'),
    readAnswered: (event) => logger.info(event, 'read answered'),
    passedThrough: (event) => logger.info(event, 'passed through'),
    requestRefused: (event) => logger.warn(event, 'request refused'),
    batchIdsReused: (event) => logger.warn(event, 'batch ids reused'),
    unmarkedCodesUnknown: (event) => logger.warn(event, 'letters in reads.unmarkedCodes have no effect'),
    recovered: (event) => logger.info(event, 'records recovered'),
    recoveryWaits: (event) => logger.warn(event, 'recovery waits'),
    recoveryFailed: (event) => logger.error(event, 'recovery failed'),
    journalFailed: (event) => logger.error(event, 'journal failed'),
    journalRecovered: () => logger.info('journal recovered'),
    journalLeaseLost: () => logger.error('journal lease lost'),
    journalRowsDamaged: (event) => logger.error(event, 'journal rows damaged'),
    slowClient: (event) => logger.warn(event, 'slow client cut off'),
    stageChanged: (event) => logger.info(event, 'stage changed'),
    stagesStale: () => logger.error('stages cannot be read'),
    stagesFresh: () => logger.info('stages are read again'),
    trailDamaged: () => logger.error('audit trail of stages damaged'),
    stagesNotKept: () => logger.error('stages cannot be kept in their file'),
    guardActed: (event) => logger.error(event, 'guard acted'),
    writesFailing: (event) => logger.warn(event, 'writes fail on V3'),
    guardsFailed: (event) => logger.error(event, 'guards failed'),
    seenNotKept: (event) => logger.warn(event, 'writes seen cannot be kept'),
    evidenceNotKept: (event) => logger.warn(event, 'evidence cannot be kept'),
    ownCredentialsDenied: (event) => logger.error(event, 'own credentials denied by V3'),
    credentialsDenied: (event) => logger.warn(event, 'credentials denied by the upstream'),
    passThroughFailed: (event) => logger.warn(event, 'pass-through failed'),
    relayFailed: (event) => logger.warn(event, 'relay failed'),
    relayedUnrecorded: (event) => logger.warn(event, 'relayed unrecorded'),
    recordingStopped: (event) => logger.error(event, 'recording stopped'),
    internalError: (event) => logger.error(event, 'internal error'),
    drainExpired: (event) => logger.warn(event, 'connections closed before their replies were read'),
    started: (event) => logger.info(event, 'started'),
    configReloaded: (event) =>
      logger[event.needsRestart.length === 0 ? 'info' : 'warn'](event, 'config reloaded'),
    configRefused: (event) => logger.error(event, 'config refused'),
    stopped: () => logger.info('stopped'),
    workerStarted: (event) => logger.info(event, 'worker started'),
    workerEnded: (event) => logger[event.restartMs === null ? 'info' : 'error'](event, 'worker ended'),
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
