import { request } from 'undici'
import * as z from 'zod'

import { AdapterError } from '../../errors.ts'

/** The client of one school and application at the token endpoint (service-facts 11). */
export interface ClientCredentials {
  readonly tokenUrl: URL
  readonly clientId: string
  /** Called when the secret is sent, so that it is stored nowhere else. */
  readonly clientSecret: () => string
  readonly scope: string
  /** Sent as `acr_values=orgselected:<id>`; undefined: left out. */
  readonly organisation: string | undefined
}

/** A token and how long it is good. */
export interface IssuedToken {
  readonly token: string
  readonly lifetimeMs: number
}

const MAX_REPLY_BYTES = 65_536
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
  const { status, json } = await ask(client.tokenUrl, form.toString())
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

async function ask(url: URL, body: string): Promise<{ status: number; json: unknown }> {
  try {
    const reply = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of reply.body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_REPLY_BYTES) break
      chunks.push(chunk)
    }
    return { status: reply.statusCode, json: parse(Buffer.concat(chunks).toString('utf8')) }
  } catch (cause) {
    throw unavailable('The token endpoint cannot be reached.', cause)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined // no JSON holds no token: the caller says so
  }
}

function unavailable(message: string, cause?: unknown): AdapterError {
  return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', message, { cause })
}
