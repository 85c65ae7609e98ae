import type { IncomingHttpHeaders } from 'node:http'

import { AdapterError } from '../errors.ts'

/** The credentials that every client sends (service.md 5). */
interface ClientCredentials {
  readonly subscriptionKey: string
  readonly authorization: string
}

/**
 * Returns the credentials of a request. A missing credential is an empty string, for requests to V2, which checks the credentials itself.
 */
export function showClientCredentials(headers: IncomingHttpHeaders): ClientCredentials {
  const subscriptionKey = headers['ocp-apim-subscription-key']
  return {
    subscriptionKey: typeof subscriptionKey === 'string' ? subscriptionKey : '',
    authorization: headers.authorization ?? '',
  }
}

/** Returns the unverified credentials of a request. Throws `ADP_SUBSCRIPTION_KEY` or `ADP_TOKEN` if the key or the token is missing. */
export function readClientCredentials(headers: IncomingHttpHeaders): ClientCredentials {
  const { subscriptionKey, authorization } = showClientCredentials(headers)
  if (subscriptionKey === '') {
    throw new AdapterError(
      'ADP_SUBSCRIPTION_KEY',
      'Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API.',
    )
  }
  if (!/^bearer +\S/i.test(authorization)) {
    throw new AdapterError(
      'ADP_TOKEN',
      'Access denied due to missing access token. Send "Authorization: bearer <token>".',
    )
  }
  return { subscriptionKey, authorization }
}
