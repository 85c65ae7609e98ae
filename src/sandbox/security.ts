import { randomBytes } from 'node:crypto'
import { gatewayError, rateLimitReply, type Reply } from './http/reply.ts'
import type { SandboxSettings } from './options.ts'

export interface Principal {
  /** The security domains that the token has (service.md 1.1), or `undefined` if it has all domains. */
  readonly domains: ReadonlySet<string> | undefined
  /** The author of the marks that this caller writes, as a guid in lower case. */
  readonly actorId: string
}

/** Checks the key, the rate limit and the token of a call (service.md 5, service-facts 10). Returns the caller or the refusal. */
export type Admit = (credentials: {
  readonly subscriptionKey: string | undefined
  readonly authorization: string | undefined
}) => { readonly principal: Principal } | { readonly refusal: Reply }

/** The subscription key, bearer token, client id and client secret that are always accepted and have all permissions. */
const builtIn = 'sandbox'

const missingKey =
  'Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API.'
const invalidKey =
  'Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.'
const invalidToken = 'Unauthorized. Access token is missing or invalid.'

export function createSecurity(settings: SandboxSettings, actorId: string, now: () => number) {
  const issued = createIssuedTokens(now)
  const gateway = (
    keys: readonly string[],
    tokens: SandboxSettings['tokens'],
    callsPerSecond: number | undefined,
  ): Admit => {
    const accepted = new Set([builtIn, ...keys])
    const declared = new Map<string, ReadonlySet<string> | undefined>([[builtIn, undefined]])
    for (const { token, domains } of tokens) declared.set(token, new Set(domains))
    const countCall = createRateLimit(callsPerSecond)
    // The key is checked first, then the rate limit, and then the token (service-facts 9 to 12).
    return ({ subscriptionKey, authorization }) => {
      if (subscriptionKey === undefined || subscriptionKey === '')
        return { refusal: gatewayError(401, missingKey) }
      if (!accepted.has(subscriptionKey)) return { refusal: gatewayError(401, invalidKey) }
      const waitSeconds = countCall(subscriptionKey)
      if (waitSeconds !== undefined) return { refusal: rateLimitReply(waitSeconds) }
      // The scheme is case-insensitive (RFC 9110 11.1), and `service.md` 4.2 writes the scheme in lower case.
      const token = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
      if (token !== undefined && declared.has(token))
        return { principal: { actorId, domains: declared.get(token) } }
      const grant = token === undefined ? undefined : issued.find(token)
      if (grant === undefined) return { refusal: gatewayError(401, invalidToken) }
      return { principal: { actorId, domains: grant.domains } }
    }
  }
  const { keys, tokens, clients, callsPerSecond, v2 } = settings
  return {
    /** The gateway of the only port, or of the V3 port if V2 has a separate port. */
    admit: gateway(keys, tokens, callsPerSecond),
    /** The gateway of the separate port for V2, which can have other keys and tokens (service-facts 10). */
    admitV2: gateway(v2?.keys ?? keys, v2?.tokens ?? tokens, v2?.callsPerSecond),
    issueToken: (contentType: string | undefined, body: string): Reply =>
      answerTokenCall([{ id: builtIn, secret: builtIn }, ...clients], issued, contentType, body),
  }
}

/**
 * Creates the rate limit, which limits the calls with each subscription key in a sliding window of one second, by the clock of the machine.
 * The returned function returns the seconds to wait if a call exceeds the limit. A refused call is not counted.
 */
function createRateLimit(callsPerSecond = Infinity): (subscriptionKey: string) => number | undefined {
  const calls = new Map<string, number[]>()
  return (subscriptionKey) => {
    if (callsPerSecond === Infinity) return undefined
    const nowMs = performance.now()
    const recent = (calls.get(subscriptionKey) ?? []).filter((at) => at > nowMs - 1000)
    calls.set(subscriptionKey, recent)
    const [oldest] = recent
    if (recent.length < callsPerSecond || oldest === undefined) {
      recent.push(nowMs)
      return undefined
    }
    return Math.max(1, Math.ceil((oldest + 1000 - nowMs) / 1000))
  }
}

/** The security domains of a token, or `undefined` if the token has all domains. */
type Domains = ReadonlySet<string> | undefined

/** The time for which a token is valid (service-facts 11). */
const lifetimeSeconds = 3600

function createIssuedTokens(now: () => number) {
  // The tokens in the order in which they were issued. The first token expires first unless the clock was set back.
  const issued = new Map<string, { domains: Domains; expiresAt: number }>()
  return {
    find: (token: string): { readonly domains: Domains } | undefined => {
      const grant = issued.get(token)
      return grant !== undefined && grant.expiresAt > now() ? grant : undefined
    },
    issue: (domains: Domains): string => {
      for (const [token, { expiresAt }] of issued) {
        if (expiresAt > now()) break
        issued.delete(token)
      }
      const token = randomBytes(24).toString('base64url')
      issued.set(token, { domains, expiresAt: now() + lifetimeSeconds * 1000 })
      return token
    },
  }
}

/**
 * Answers a call of the token endpoint of the sandbox (service-facts 11; RFC 6749 4.4 and 5). The call is form-encoded and has the grant
 * type `client_credentials`, a `scope`, and the organisation in `acr_values`. The reply contains a token or an error of RFC 6749 5.2.
 */
function answerTokenCall(
  clients: readonly (Pick<SandboxSettings['clients'][number], 'id' | 'secret'> &
    Partial<SandboxSettings['clients'][number]>)[],
  tokens: ReturnType<typeof createIssuedTokens>,
  contentType: string | undefined,
  body: string,
): Reply {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? ''))
    return tokenReply(400, { error: 'invalid_request' })
  const form = new URLSearchParams(body)
  if (form.get('grant_type') === null) return tokenReply(400, { error: 'invalid_request' })
  if (form.get('grant_type') !== 'client_credentials')
    return tokenReply(400, { error: 'unsupported_grant_type' })
  const client = clients.find(
    ({ id, secret }) => id === form.get('client_id') && secret === form.get('client_secret'),
  )
  if (client === undefined) return tokenReply(401, { error: 'invalid_client' })
  const scope = form.get('scope')
  if (scope === null || scope === '') return tokenReply(400, { error: 'invalid_scope' })
  const organisation = /(?:^| )orgselected:(\S+)/.exec(form.get('acr_values') ?? '')?.[1]
  if (organisation === undefined) return tokenReply(400, { error: 'invalid_request' })
  // Imitates a school that has withdrawn its consent: the credentials are still valid, but give no token for this organisation.
  if (client.organisation !== undefined && client.organisation !== organisation)
    return tokenReply(400, { error: 'unauthorized_client' })
  const token = tokens.issue(client.domains && new Set(client.domains))
  return tokenReply(200, { access_token: token, expires_in: lifetimeSeconds, token_type: 'Bearer', scope })
}

const tokenReply = (status: number, body: Readonly<Record<string, unknown>>): Reply => ({
  status,
  headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
  body: JSON.stringify(body),
})
