/** The client that a call, a wait or a number of bytes is charged to. */
export interface Share {
  readonly partner: string
  /** Unique over all partners. */
  readonly owner: string
  /** False until V3 has accepted the credentials that the request showed. */
  isAccepted(): boolean
}

/** The holder that all clients have together which V3 has not accepted yet. */
export const NEWCOMERS = ''

/** What is counted for this share now: that of its owner, or that of the newcomers. */
export function holderOf(share: Share): string {
  return share.isAccepted() ? share.owner : NEWCOMERS
}

/** A share for callers that divide nothing between clients. */
export const soleShare: Share = { partner: '-', owner: '-', isAccepted: () => true }
