import type { NotApplied } from './post-failure.ts'

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
