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

/** The service's own schedule: 2 s, 4 s, doubling up to about an hour (service-facts 9). */
const FIRST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 3_600_000
/** A service that takes no connection may be at a restart; when it is not back soon, the client gets an error. */
const RECONNECT_MS: readonly number[] = [250, 1_000]

/**
 * How long to wait before a record is posted again; undefined: not at all. Only where nothing was applied and another try
 * may help: no connection, 429, 503 that names a time. `attempt` counts from 0. After a 429 the first wait is the one that the
 * service names, later ones follow its schedule.
 */
export function retryWaitMs(outcome: NotApplied, attempt: number): number | undefined {
  const scheduledMs = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS)
  const toldMs = outcome.retryAfterMs
  switch (outcome.reason) {
    case 'notConnected':
      return RECONNECT_MS[attempt]
    case 'throttled':
      return attempt === 0 ? (toldMs ?? scheduledMs) : Math.max(toldMs ?? 0, scheduledMs)
    case 'unavailable':
      if (toldMs === undefined) return undefined
      return attempt === 0 ? toldMs : Math.max(toldMs, scheduledMs)
    default:
      return undefined
  }
}

/**
 * The wait that the upstream asks for, in ms: from the header `Retry-After`, seconds or an HTTP date (RFC 9110 10.2.3), else
 * from the gateway's text (service-facts 9). `nowMs` is the time that a date is compared with.
 */
export function readRetryAfter(header: string | undefined, body: string, nowMs: number): number | undefined {
  const text = header?.trim() ?? /try again in (\d{1,6}) seconds/i.exec(body)?.[1]
  if (text === undefined || text === '') return undefined
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
