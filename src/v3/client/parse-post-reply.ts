import { parseJson, readUpstreamError } from '../errors/upstream-error.ts'
import { isV3Reply } from '../record/is-v3-reply.ts'
import type { PostOutcome } from '../errors/post-outcome.ts'
import { readRetryAfter } from '../../upstream/index.ts'

/** The answer to one record has about thirty brackets and commas. */
const MAX_REPLY_NODES = 4_096

/**
 * Reads the answer to a POST. Only a 2xx with a readable record counts as accepted; a 2xx with HTML, nothing or broken JSON
 * shows that something happened, not what. 500, 502 and 504 may come after the write was applied.
 * `retryAfter` is the header's text: seconds or an HTTP date (RFC 9110 10.2.3); `nowMs` the time to count a date from.
 */
export function parsePostReply(
  status: number,
  body: string,
  retryAfter: string | undefined,
  nowMs: number,
): PostOutcome {
  if (status >= 200 && status < 300) {
    const reply = parseJson(body, MAX_REPLY_NODES)
    return isV3Reply(reply) ? { kind: 'accepted', reply } : { kind: 'unknown', reason: 'unreadableReply' }
  }
  if (status === 429 || status === 503 || status === 408) {
    const reason = status === 429 ? 'throttled' : 'unavailable'
    return { kind: 'notApplied', reason, retryAfterMs: readRetryAfter(retryAfter, body, nowMs) }
  }
  if (status >= 400 && status < 500) return { kind: 'refused', error: readUpstreamError(status, body) }
  // A redirect is never followed: its target was not configured.
  if (status >= 300 && status < 400)
    return { kind: 'notApplied', reason: 'redirected', retryAfterMs: undefined }
  return { kind: 'unknown', reason: 'serverError' }
}
