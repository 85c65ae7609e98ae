import type { IncomingHttpHeaders } from 'node:http'

import { AdapterError } from '../errors.ts'

/** The credentials of every client (service.md 5). */
interface ClientCredentials {
  readonly subscriptionKey: string
  readonly authorization: string
}

/** The credentials as they are, empty where there are none: V2 judges those of the requests that it serves. */
export function showClientCredentials(headers: IncomingHttpHeaders): ClientCredentials {
  const subscriptionKey = headers['ocp-apim-subscription-key']
  return {
    subscriptionKey: typeof subscriptionKey === 'string' ? subscriptionKey : '',
    authorization: headers.authorization ?? '',
  }
}

/**
 * Reads the credentials in the headers of a request; it does not verify them.
 * Errors: `ADP_SUBSCRIPTION_KEY` without a key, `ADP_TOKEN` without a bearer token.
 */
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
