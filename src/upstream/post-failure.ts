/** Why a request that left has no readable reply. */
export type LossReason = 'connectionLost' | 'timeout' | 'unreadableReply'

/** Why a write was not made. */
export type NotAppliedReason =
  | 'notConnected'
  | 'budget'
  | 'queueFull'
  | 'batchRefused'
  | 'throttled'
  | 'unavailable'
  | 'redirected'
  | 'stopped'
  | 'ownCredentials'
  | 'leaseLost'

/** A write that was not made: it never left, or the upstream said that it did not take it up (429, 503). */
export interface NotApplied {
  readonly kind: 'notApplied'
  readonly reason: NotAppliedReason
  readonly retryAfterMs: number | undefined
}

/** A POST without a readable reply: it was not applied, or it may have been. */
export type Unanswered = NotApplied | { readonly kind: 'unknown'; readonly reason: LossReason }
