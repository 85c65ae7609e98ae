import { setTimeout as wait } from 'node:timers/promises'

import { AdapterError, type ErrorDetail } from '../errors.ts'
import type { ReadOutcome, UpstreamError, V3Credentials, V3Reader } from '../v3/index.ts'

/** Waits between attempts where the service names none, doubled each time (service-facts 9). */
const FIRST_WAIT_MS = 2_000
/** Attempts of one page when the service cannot be reached; one that asks to wait is asked until the budget ends. */
const MAX_LOSSES = 2

/** One read of a client: whose it is, until when, and what ends it early. */
export interface ReadSession {
  readonly reader: V3Reader
  /** Replaced by `renew`, so that later pages go with the new token. */
  credentials: V3Credentials
  /** Credentials with a new token, once the service refused the one above; undefined: the token is the client's. */
  renew: (() => Promise<V3Credentials>) | undefined
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number
  readonly nowMs: () => number
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
}

/**
 * GETs from V3 and waits where it asks to (429, 503), within the deadline. The JSON of a 2xx; undefined for 404.
 * Errors: `ADP_TOKEN`, `ADP_FORBIDDEN`, `ADP_UPSTREAM_REFUSED` with the service's own words, `ADP_UPSTREAM_UNAVAILABLE`,
 * `ADP_BUDGET_EXCEEDED`, `ADP_UPSTREAM_PROTOCOL`.
 */
export async function readUpstream(session: ReadSession, key: string, query: string): Promise<unknown> {
  const { reader, deadlineMs, nowMs, signal } = session
  let losses = 0
  for (let waitMs = FIRST_WAIT_MS; ; waitMs *= 2) {
    const outcome = await reader.get(key, query, session.credentials, signal)
    const { renew } = session
    if (renew !== undefined && outcome.kind === 'refused' && outcome.error.status === 401) {
      session.renew = undefined
      session.credentials = await renew()
      continue
    }
    if (outcome.kind !== 'unavailable') return answerOf(outcome)
    const asked = outcome.retryAfterMs
    if (asked === undefined) losses += 1
    const pauseMs = asked ?? waitMs
    if (losses > MAX_LOSSES || nowMs() + pauseMs > deadlineMs)
      throw new AdapterError(
        asked === undefined ? 'ADP_UPSTREAM_UNAVAILABLE' : 'ADP_BUDGET_EXCEEDED',
        'The service is not available, or takes no more calls now. Read again later.',
      )
    await wait(pauseMs, undefined, { signal })
  }
}

function answerOf(outcome: Exclude<ReadOutcome, { kind: 'unavailable' }>): unknown {
  switch (outcome.kind) {
    case 'read':
      return outcome.json
    case 'broken':
      throw new AdapterError(
        'ADP_UPSTREAM_PROTOCOL',
        `The service's answer cannot be read (status ${outcome.status}).`,
      )
    case 'refused':
      if (outcome.error.status === 404) return undefined
      throw refusalOf(outcome.error)
  }
}

function refusalOf({ status, entries }: UpstreamError): AdapterError {
  const told = entries[0]?.message.slice(0, 2_000) ?? ''
  if (status === 401 || status === 403) {
    const message = told === '' ? `The service denied the credentials (${status}).` : told
    return new AdapterError(status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
  }
  const details = entries.map(({ code, message, target }): ErrorDetail => ({
    code: code ?? 'ADP_UPSTREAM_REFUSED',
    message: message.slice(0, 2_000),
    ...(target === undefined ? {} : { target }),
  }))
  return new AdapterError('ADP_UPSTREAM_REFUSED', told === '' ? `The service answered ${status}.` : told, {
    details,
  })
}
