import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import { fetchJson } from './fetch-whole.ts'

/** The client of one school and application at the token endpoint (service-facts 11). */
interface ClientCredentials {
  readonly tokenUrl: URL
  readonly clientId: string
  /** Called when the secret is sent, so that it is stored nowhere else. */
  readonly clientSecret: () => string
  readonly scope: string
  /** Sent as `acr_values=orgselected:<id>`; undefined: left out. */
  readonly organisation: string | undefined
}

/** A token and how long it is good. */
interface IssuedToken {
  readonly token: string
  readonly lifetimeMs: number
}

const TIMEOUT_MS = 10_000
/** One hour, where the endpoint does not say (service-facts 11). */
const USUAL_LIFETIME_S = 3_600

const issued = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  expires_in: z.coerce.number().positive().max(31_536_000).catch(USUAL_LIFETIME_S),
})
/** The only words of an error reply that are passed on (RFC 6749 5.2). */
const refusal = z.object({
  error: z.enum([
    'invalid_request',
    'invalid_client',
    'invalid_grant',
    'unauthorized_client',
    'unsupported_grant_type',
    'invalid_scope',
  ]),
})

/**
 * Asks the token endpoint for a token (RFC 6749 4.4). Errors: `ADP_UPSTREAM_UNAVAILABLE` when it cannot be reached or answers
 * 429 or 5xx, `ADP_V3_CREDENTIALS` when it refuses the client, `ADP_UPSTREAM_PROTOCOL` when its answer holds no token. No text of the endpoint and no
 * secret is in them.
 */
export async function fetchToken(client: ClientCredentials): Promise<IssuedToken> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.clientSecret(),
    scope: client.scope,
    ...(client.organisation === undefined ? {} : { acr_values: `orgselected:${client.organisation}` }),
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const request = { method: 'POST', headers, body: form.toString() } as const
  const { status, json } = await fetchJson(client.tokenUrl, request, TIMEOUT_MS).catch((cause: unknown) => {
    throw unavailable('The token endpoint cannot be reached.', cause)
  })
  if (status === 429 || status >= 500) {
    throw unavailable(`The token endpoint answered ${status}.`)
  }
  if (status !== 200) {
    const reason = refusal.safeParse(json)
    const word = reason.success ? ` ${reason.data.error}` : ''
    throw new AdapterError(
      'ADP_V3_CREDENTIALS',
      `The token endpoint refused this partner's client: ${status}${word}. Check its clientId, clientSecret, scope and organisation.`,
    )
  }
  const reply = issued.safeParse(json)
  if (!reply.success)
    throw new AdapterError('ADP_UPSTREAM_PROTOCOL', 'The answer of the token endpoint holds no token.')
  return { token: reply.data.access_token, lifetimeMs: reply.data.expires_in * 1_000 }
}

function unavailable(message: string, cause?: unknown): AdapterError {
  return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', message, { cause })
}

/** The tokens of one partner. */
export interface TokenSource {
  /** A token that is good now. Rejects with the error of the endpoint when there is none. */
  token(): Promise<string>
  /** A token other than `refused`, which the service did not take. */
  renew(refused: string): Promise<string>
}

interface TokenSourceOptions {
  /** Asks for a new token. */
  readonly fetch: () => Promise<IssuedToken>
  /** Milliseconds that never go back. */
  readonly nowMs: () => number
}

/** From this share of its lifetime on a token is replaced, while it is still used. */
const REFRESH_AT = 0.8
/** A token that is used must still be good when it arrives. */
const LEAST_LEFT_MS = 5_000
/** Pause after a failed early refresh. */
const PAUSE_MS = 5_000

/**
 * Creates a cache of one token: fetched when first needed, replaced in the background at 80 % of its lifetime, one request at a
 * time however many ask. While the endpoint fails, the old token serves to its end.
 */
export function createTokenSource({ fetch, nowMs }: TokenSourceOptions): TokenSource {
  let cached: { readonly token: string; readonly refreshMs: number; readonly endMs: number } | undefined
  let running: Promise<string> | undefined
  let pausedUntilMs = -Infinity
  const load = async (): Promise<string> => {
    const askedMs = nowMs()
    try {
      const { token, lifetimeMs } = await fetch()
      const endMs = askedMs + Math.max(lifetimeMs - LEAST_LEFT_MS, lifetimeMs / 2)
      cached = { token, refreshMs: askedMs + lifetimeMs * REFRESH_AT, endMs }
      return token
    } catch (error) {
      pausedUntilMs = nowMs() + PAUSE_MS
      throw error
    } finally {
      running = undefined
    }
  }
  const once = (): Promise<string> => (running ??= load())
  return {
    token: () => {
      const now = nowMs()
      if (cached === undefined || cached.endMs <= now) return once()
      // The token in use is still valid; the next call sees the result of the early refresh.
      if (cached.refreshMs <= now && pausedUntilMs <= now) once().catch(() => undefined)
      return Promise.resolve(cached.token)
    },
    renew: (refused) =>
      cached !== undefined && cached.token !== refused && cached.endMs > nowMs()
        ? Promise.resolve(cached.token)
        : once(),
  }
}
