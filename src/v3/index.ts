export {
  type V3Client,
  type V3ClientOptions,
  type V3Credentials,
  type V3Writes,
  createV3Client,
} from './client/v3-client.ts'
export { type ClientCredentials, fetchToken } from './auth/fetch-token.ts'
export { createTokenSource, type TokenSource } from './auth/token-source.ts'
export { type Clock, systemClock } from './client/clock.ts'
export { createThrottles, type Throttles } from './client/throttles.ts'
export type { OnCall, V3Call } from './client/observe-reads.ts'
export type { Throttle } from './client/throttle.ts'
export type { SharedTurns, TurnLimit } from './client/turns.ts'
export type { CallPriority } from './client/waiting-line.ts'
export { retryWaitMs } from './client/retry.ts'
export { readRetryAfter } from './client/read-outcome.ts'
export type { BatchChoice } from './client/batch/batch-posts.ts'
export type { Pace } from './client/calls.ts'
export type { NotApplied } from './client/retry.ts'
export type { NotAppliedReason, PostOutcome, UnknownReason } from './errors/post-outcome.ts'
export { runOrdered } from './client/run-ordered.ts'
export { type BodyProfile, encodeRecord } from './record/encode-record.ts'
export { type V3Record, type V3Reply, ZERO_GUID } from './record/v3-record.ts'
export type { UpstreamError, UpstreamErrorEntry } from './errors/upstream-error.ts'
export { createFairGate, type FairGate, type GateRefusal } from './client/shares/fair-gate.ts'
export { createQuota } from './client/shares/quota.ts'
export { createSharedReader, type SharedReader, type SharedReadOutcome } from './client/shares/fair-reader.ts'
export { holderOf, type Share, soleShare } from './client/shares/share.ts'
export { createV3Reader, type ReadOutcome, type V3Reader } from './client/read-client.ts'
