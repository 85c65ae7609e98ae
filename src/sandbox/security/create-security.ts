import type { SandboxSettings } from '../options.ts'
import { createGateway, sandboxCredential } from './gateway.ts'
import type { Admission, Credentials } from './gateway.ts'
import { createRateLimit } from './rate-limit.ts'
import { createTokenEndpoint } from './token-endpoint.ts'
import type { TokenClient } from './token-endpoint.ts'
import { createIssuedTokens, createTokens } from './tokens.ts'
import type { Reply } from '../edge/reply.ts'

/** Checks the credentials of a call, and counts it. */
export type Admit = (credentials: Credentials) => Admission

/** The gateways and the token endpoint. */
export interface Security {
  /** The gateway of the only port, or of that of V3. */
  readonly admit: Admit
  /** The gateway of the port of V2; a key or token of one gateway need not be one of the other (service-facts 10). */
  readonly admitV2: Admit
  readonly issueToken: (contentType: string | undefined, body: string) => Reply
}

/** Creates gateways and token endpoint from the options; the built-in caller is always among them. */
export function createSecurity(settings: SandboxSettings, actorId: string, now: () => number): Security {
  const issued = createIssuedTokens(now)
  const gateway = ({ keys, tokens, callsPerSecond }: Callers): Admit => {
    const declared = new Map<string, ReadonlySet<string> | undefined>([[sandboxCredential, undefined]])
    for (const { token, domains } of tokens) declared.set(token, new Set(domains))
    return createGateway({
      keys: new Set([sandboxCredential, ...keys]),
      tokens: createTokens(declared, issued),
      // The machine's time, not the service's: the clock of the sandbox may be fixed.
      countCall: createRateLimit(callsPerSecond, () => performance.now()),
      actorId,
    })
  }
  const everything: TokenClient = {
    id: sandboxCredential,
    secret: sandboxCredential,
    organisation: undefined,
    domains: undefined,
  }
  const clients = settings.clients.map(({ id, secret, organisation, domains }): TokenClient => ({
    ...{ id, secret, organisation },
    domains: domains === undefined ? undefined : new Set(domains),
  }))
  return {
    admit: gateway(settings),
    admitV2: gateway({
      keys: settings.v2?.keys ?? settings.keys,
      tokens: settings.v2?.tokens ?? settings.tokens,
      callsPerSecond: settings.v2?.callsPerSecond,
    }),
    issueToken: createTokenEndpoint([everything, ...clients], issued),
  }
}

/** The callers of one gateway. */
type Callers = Pick<SandboxSettings, 'keys' | 'tokens'> & {
  readonly callsPerSecond?: number | undefined
}
