import { AdapterError } from '../errors.ts'
import type { UpstreamError } from '../v3/index.ts'
import type { AcceptedCredentials } from './accepted-credentials.ts'
import type { Partner } from './partner.ts'

/**
 * The error of a call that V3 denies for what the adapter lends it, which is noted for the operator; undefined: it is not denied, or for
 * what its client sent. The gateway's words tell the key from the token (service-facts 12). 403 is no such error: the token is right.
 */
export function ownDenialOf(
  accepted: Pick<AcceptedCredentials, 'ownDenied'>,
  { id, subscriptionKey, tokens }: Pick<Partner, 'id' | 'subscriptionKey' | 'tokens'>,
  { status, entries }: UpstreamError,
): AdapterError | undefined {
  if (status !== 401) return undefined
  const isKey = entries.some(({ message }) => /subscription key/i.test(message))
  if ((isKey ? subscriptionKey : tokens) === undefined) return undefined
  accepted.ownDenied(id, isKey ? 'subscriptionKey' : 'token')
  const what = isKey ? 'subscription key' : 'client'
  return new AdapterError(
    'ADP_V3_CREDENTIALS',
    `V3 denies the ${what} that the adapter is configured with for this partner. Nothing was applied now; its operator has to mend that.`,
  )
}
