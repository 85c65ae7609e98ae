import { AdapterError, type ErrorDetail } from '../errors.ts'
import { withoutPlaces } from '../translate/index.ts'
import { type CallBudget, overloaded, type QueueKey, retryWaitMs } from '../upstream/index.ts'
import type { ReadOutcome, UpstreamError, V3Credentials, V3Reader } from '../v3/index.ts'

export interface ReadSession {
  readonly reader: V3Reader
  readonly queueKey: QueueKey
  /** The credentials of the next call. `renew` replaces them, so that later pages are read with the new token. */
  credentials: V3Credentials
  /**
   * Returns credentials with a new token after V3 rejected the current one. `undefined` for a client's own token, and after one renewal.
   */
  renew: (() => Promise<V3Credentials>) | undefined
  readonly budget: CallBudget
  /** Called for each answer that shows that V3 accepted the credentials. */
  readonly onAccepted?: () => void
  /** Returns the error if V3 denied credentials of the adapter, and `undefined` if it denied the client's. Default: always the client's. */
  readonly ownDenial?: (error: UpstreamError) => AdapterError | undefined
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  pages: number
}

/**
 * Reads from V3 within the rate limit. Repeats the GET after a 408, 429, 503 or lost connection, with the pauses of `retryWaitMs` and
 * within the budget. Returns the JSON of a 2xx, or `undefined` for a 404. Throws `ADP_TOKEN`, `ADP_FORBIDDEN` and `ADP_UPSTREAM_REFUSED`
 * with V3's own message. Also throws `ADP_UPSTREAM_UNAVAILABLE`, `ADP_BUDGET_EXCEEDED`, `ADP_OVERLOADED` and `ADP_UPSTREAM_PROTOCOL`.
 */
export async function readUpstream(session: ReadSession, resource: string, query: string): Promise<unknown> {
  const { reader, budget, signal } = session
  for (let attempt = 0; ;) {
    await budget.take()
    const outcome = await reader.get(
      resource,
      query,
      session.credentials,
      signal,
      budget.leftMs(),
      session.queueKey,
    )
    if (outcome.kind === 'read') session.onAccepted?.()
    const { renew } = session
    if (renew !== undefined && outcome.kind === 'refused' && outcome.error.status === 401) {
      session.renew = undefined
      session.credentials = await renew()
      continue
    }
    const own = outcome.kind === 'refused' ? session.ownDenial?.(outcome.error) : undefined
    if (own !== undefined) throw own
    if (outcome.kind !== 'unavailable') {
      session.pages += outcome.kind === 'busy' ? 0 : 1
      return answerOf(outcome)
    }
    const { reason, retryAfterMs } = outcome
    const waitMs = retryWaitMs(outcome, attempt)
    attempt += 1
    if (waitMs === undefined || !(await budget.pause(waitMs, reason === 'throttled')))
      throw new AdapterError(
        retryAfterMs === undefined ? 'ADP_UPSTREAM_UNAVAILABLE' : 'ADP_BUDGET_EXCEEDED',
        'The service is unavailable or accepts no more calls now. Nothing was read. Try again later.',
      )
  }
}

function answerOf(outcome: Exclude<ReadOutcome, { kind: 'unavailable' }>): unknown {
  switch (outcome.kind) {
    case 'read':
      return outcome.json
    case 'broken':
      throw new AdapterError(
        'ADP_UPSTREAM_PROTOCOL',
        `The service's reply cannot be read (status ${outcome.status}). No record was returned. Try again later.`,
      )
    case 'overdue':
      throw new AdapterError(
        'ADP_BUDGET_EXCEEDED',
        "The service's reply did not arrive completely in time. No record was returned. Try again later, or read less at a time.",
      )
    case 'busy':
      throw overloaded('connection')
    case 'refused':
      if (outcome.error.status === 404) return undefined
      throw refusalOf(outcome.error)
  }
}

function refusalOf({ status, entries }: UpstreamError): AdapterError {
  const textOf = (message: string): string => withoutPlaces(message.slice(0, 2_000))
  const text = textOf(entries[0]?.message ?? '')
  if (status === 401 || status === 403) {
    const message =
      text === ''
        ? `The service denied the credentials (${status}). Nothing was read. Check the subscription key and the token.`
        : text
    return new AdapterError(status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
  }
  const details = entries.map(({ code, message, target }): ErrorDetail => ({
    code: code ?? 'ADP_UPSTREAM_REFUSED',
    message: textOf(message),
    ...(target === undefined ? {} : { target }),
  }))
  return new AdapterError(
    'ADP_UPSTREAM_REFUSED',
    text === ''
      ? `The service refused the request (${status}). Nothing was read. Correct the request.`
      : text,
    {
      details,
    },
  )
}
