export {
  type CallEnd,
  CallGroup,
  type CallOptions,
  type CallTrace,
  type ReplyHead,
  type ReplySink,
  sendCall,
  StreamCall,
} from './call.ts'
export { type CallBudget, openCallBudget, overloaded, readRetryAfter, retryWaitMs } from './call-budget.ts'
export { createTokenSource, fetchToken, type TokenSource } from './client-token.ts'
export {
  type Connections,
  createConnections,
  type OnCall,
  type OpenConnection,
  type UpstreamTimeouts,
} from './connections.ts'
export {
  type CallPriority,
  createQuota,
  holderOf,
  type QueueKey,
  type Refusal,
  soleQueue,
} from './fair-queue.ts'
export { createReaderConnections, createWholeReader, type WholeReader } from './fetch-whole.ts'
export {
  type CallLimit,
  createRateLimit,
  createRateLimits,
  type RateLimit,
  type RateLimits,
  type RateSlots,
} from './rate-limit.ts'
export { createConnectionTo, type UpstreamRoute } from './route.ts'
export { ReplyFields } from './reply-fields.ts'
export { countNodes, MAX_NODES_AT_ONCE, MAX_PAGE_NODES, MAX_RECORD_NODES, parseJson } from './reply-json.ts'
