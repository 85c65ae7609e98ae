/** The client that calls, connections and bytes are charged to: queues and quotas are divided by it. */
export interface QueueKey {
  readonly partner: string
  /** Unique over all partners. */
  readonly owner: string
  /** False until V3 has accepted the credentials that the request showed. */
  isAccepted(): boolean
}

/** The holder that all clients have together which V3 has not accepted yet. */
export const NEWCOMERS = ''

/** Whose quota is charged now: that of the owner, or that of all newcomers. */
export function holderOf(queueKey: QueueKey): string {
  return queueKey.isAccepted() ? queueKey.owner : NEWCOMERS
}

/** The key of callers that divide nothing between clients. */
export const soleQueue: QueueKey = { partner: '-', owner: '-', isAccepted: () => true }
