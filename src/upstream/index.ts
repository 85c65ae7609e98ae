export { type CallBudget, openCallBudget, overloaded } from './call-budget.ts'
export { createTokenSource, fetchToken, type TokenSource } from './client-token.ts'
export { collectReply, createWholeReader, ReplyOverdueError, type WholeReader } from './collect-reply.ts'
export { type Connections, createConnections, type OnCall, type UpstreamTimeouts } from './connections.ts'
export type { CallPriority, Refusal } from './fair-queue.ts'
export { type DeadlineOptions, type Dispatch, openDeadline } from './open-deadline.ts'
export {
  type LossReason,
  type NotApplied,
  type NotAppliedReason,
  readRetryAfter,
  retryWaitMs,
  type Unanswered,
} from './post-failure.ts'
export type { ReplyReader, UpstreamReply } from './post-handler.ts'
export { createQuota, holderOf, type QueueKey, soleQueue } from './quota.ts'
export { createRateLimit, createRateLimits, type RateLimit, type RateLimits } from './rate-limit.ts'
export { getJson } from './request-json.ts'
export { type ReplyHead, type ReplySink, StreamCall } from './stream-call.ts'
export type { CallLimit, RateSlots } from './token-bucket.ts'
