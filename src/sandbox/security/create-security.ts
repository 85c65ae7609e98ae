import type { SandboxSettings } from '../options.ts'
import { createGateway, sandboxCredential } from './gateway.ts'
import type { Admission, Credentials } from './gateway.ts'
import { createRateLimit } from './rate-limit.ts'
import { createTokenEndpoint } from './token-endpoint.ts'
import type { TokenClient } from './token-endpoint.ts'
import { createTokens } from './tokens.ts'
import type { Reply } from '../edge/reply.ts'

/** Who may call, and how tokens are had. */
export interface Security {
  readonly admit: (credentials: Credentials) => Admission
  readonly issueToken: (contentType: string | undefined, body: string) => Reply
}

/** Creates the gateway and the token endpoint from the options; the built-in caller is always among them. */
export function createSecurity(settings: SandboxSettings, actorId: string, now: () => number): Security {
  const declared = new Map<string, ReadonlySet<string> | undefined>([[sandboxCredential, undefined]])
  for (const { token, domains } of settings.tokens) declared.set(token, new Set(domains))
  const tokens = createTokens(declared, now)
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
    admit: createGateway({
      keys: new Set([sandboxCredential, ...settings.keys]),
      tokens,
      // The machine's time, not the service's: the clock of the sandbox may be fixed.
      countCall: createRateLimit(settings.callsPerSecond, () => performance.now()),
      actorId,
    }),
    issueToken: createTokenEndpoint([everything, ...clients], tokens),
  }
}
