import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import { fetchJson } from './fetch-whole.ts'
import type { UpstreamRoute } from './route.ts'

/** The client credentials of one school and application at the token endpoint (service-facts 11). */
interface ClientCredentials {
  readonly tokenUrl: URL
  readonly clientId: string
  /** Returns the secret. Called each time the secret is sent, so that no copy of it is stored. */
  readonly clientSecret: () => string
  readonly scope: string
  /** The organisation, which is sent as `acr_values=orgselected:<id>`, or `undefined` to send none. */
  readonly organisation: string | undefined
}

interface IssuedToken {
  readonly token: string
  readonly lifetimeMs: number
}

const TIMEOUT_MS = 10_000
/** The lifetime of a token in seconds if the endpoint names no lifetime (service-facts 11). */
const USUAL_LIFETIME_S = 3_600

const issued = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  expires_in: z.coerce.number().positive().max(31_536_000).catch(USUAL_LIFETIME_S),
})
/** The error codes that are passed on from an error reply (RFC 6749 5.2). All other text of the reply is dropped. */
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
 * Requests a token (RFC 6749 4.4). Throws `ADP_UPSTREAM_UNAVAILABLE` if the endpoint cannot be reached or replies 429 or 5xx,
 * `ADP_V3_CREDENTIALS` if it rejects the client, and `ADP_UPSTREAM_PROTOCOL` if the reply has no token. The errors contain no secret, and
 * nothing of the endpoint's reply but the status and the error code.
 */
export async function fetchToken(client: ClientCredentials, route?: UpstreamRoute): Promise<IssuedToken> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.clientSecret(),
    scope: client.scope,
    ...(client.organisation === undefined ? {} : { acr_values: `orgselected:${client.organisation}` }),
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  const request = { method: 'POST', headers, body: form.toString() } as const
  const { status, json } = await fetchJson(client.tokenUrl, request, TIMEOUT_MS, route).catch(
    (cause: unknown) => {
      throw unavailable(
        'The token endpoint of this partner cannot be reached, so the adapter has no token for V3. Nothing was applied. Try again later.',
        cause,
      )
    },
  )
  if (status === 429 || status >= 500) {
    throw unavailable(
      `The token endpoint of this partner answered ${status}, so the adapter has no token for V3. Nothing was applied. Try again later.`,
    )
  }
  if (status !== 200) {
    const reason = refusal.safeParse(json)
    const word = reason.success ? ` ${reason.data.error}` : ''
    throw new AdapterError(
      'ADP_V3_CREDENTIALS',
      `The token endpoint rejected the client of this partner (${status}${word}). Nothing was applied. The operator must correct clientId, clientSecret, scope or organisation in v3.auth.`,
    )
  }
  const reply = issued.safeParse(json)
  if (!reply.success)
    throw new AdapterError(
      'ADP_UPSTREAM_PROTOCOL',
      'The reply of the token endpoint contains no token. Nothing was applied. The operator must check tokenUrl in v3.auth.',
    )
  return { token: reply.data.access_token, lifetimeMs: reply.data.expires_in * 1_000 }
}

function unavailable(message: string, cause?: unknown): AdapterError {
  return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', message, { cause })
}

export interface TokenSource {
  /** Resolves with a valid token. Rejects with the error of `fetch` if there is no valid token. */
  token(): Promise<string>
  renew(refused: string): Promise<string>
}

interface TokenSourceOptions {
  readonly fetch: () => Promise<IssuedToken>
  /** Returns the milliseconds of a monotonic clock. */
  readonly nowMs: () => number
}

/** The fraction of its lifetime after which a token is renewed in the background. */
const REFRESH_AT = 0.8
/** The remaining lifetime below which a token is no longer sent, so that it is still valid when it arrives. */
const LEAST_LEFT_MS = 5_000
const PAUSE_MS = 5_000

/** Creates a source of tokens. All callers share one token, which is renewed in the background at 80 % of its lifetime. */
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
      // Renews the token in the background. A failure is ignored, because the current token is still valid.
      if (cached.refreshMs <= now && pausedUntilMs <= now) once().catch(() => undefined)
      return Promise.resolve(cached.token)
    },
    renew: (refused) =>
      cached !== undefined && cached.token !== refused && cached.endMs > nowMs()
        ? Promise.resolve(cached.token)
        : once(),
  }
}
