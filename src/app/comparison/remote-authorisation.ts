import type { Clock } from '../../clock.ts'
import type { AskAuthorisation, ClientLimit } from '../../compare/live/index.ts'
import type { Client } from '../../partners/partner.ts'
import { toPostedClient } from './posted-values.ts'
import type { Caller } from './thread-calls.ts'

/** Creates the authorisation of calls to V3: keys, tokens and the rate limit of clients stay with the thread that serves them. */
export function createRemoteAuthorisation(
  { call }: Caller,
  clock: Clock,
): (client: Client) => Promise<AskAuthorisation> {
  return async (client) => {
    const own = toPostedClient(client)
    const { credentials, canRenew, isLimited } = await call('authorise', own)
    const clientLimit: ClientLimit = {
      nowMs: () => clock.nowMs(),
      acquire: async (_priority, deadlineMs) => {
        const sinceMs = clock.nowMs()
        const admitted = await call('acquire', own, deadlineMs - sinceMs)
        const waitedMs = clock.nowMs() - sinceMs
        return admitted ? { admitted, waitedMs } : { admitted, waitedMs, reason: 'deadline' }
      },
      sincePauseMs: () => call('sincePauseMs', own),
    }
    const renew = canRenew ? () => call('renew', own, credentials) : undefined
    return {
      authorisation: { ...client, credentials, rateLimit: undefined, renew },
      clientLimit: isLimited ? clientLimit : undefined,
    }
  }
}
