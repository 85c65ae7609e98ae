export { type CallBudget, openCallBudget } from './call-budget.ts'
export { collectReply, ReplyOverdueError } from './collect-reply.ts'
export {
  type Connections,
  type ConnectionUser,
  createConnections,
  toClientOptions,
  type UpstreamTimeouts,
} from './connections.ts'
export { getJson } from './get-json.ts'
export { createWholeReader, type WholeReader, type WholeReply } from './whole-reader.ts'
export { enterGate, noConnection } from './fairness/enter-gate.ts'
export { createFairGate, type FairGate, type GateRefusal } from './fairness/fair-gate.ts'
export { holderOf, type QueueKey, soleQueue } from './fairness/queue-key.ts'
export { createQuota } from './fairness/quota.ts'
export { observeReads, type OnCall, type UpstreamCall } from './observe-calls.ts'
export { type Deadline, type DeadlineOptions, type Dispatch, openDeadline } from './open-deadline.ts'
export type { LossReason, NotApplied, NotAppliedReason, Unanswered } from './post-failure.ts'
export type { ReplyReader, UpstreamReply } from './post-handler.ts'
export type { RateLimit } from './rate-limit/rate-limit.ts'
export { createRateLimits, type RateLimits } from './rate-limit/rate-limits.ts'
export type { RateSlots } from './rate-limit/rate-slots.ts'
export type { CallLimit } from './rate-limit/token-bucket.ts'
export type { CallPriority } from './rate-limit/waiting-line.ts'
export { readRetryAfter } from './retry-after.ts'
export { retryWaitMs } from './retry.ts'
export { type ClientCredentials, fetchToken } from './tokens/fetch-token.ts'
export {
  type CallFailure,
  type ReplyHead,
  type ReplySink,
  StreamCall,
  type StreamCallOptions,
} from './stream-call.ts'
export { createTokenSource, type TokenSource } from './tokens/token-source.ts'
