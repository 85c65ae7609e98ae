import { type AdapterError, type ErrorDetail, errorRules } from '../../errors.ts'

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/**
 * Returns the media type of a JSON reply at a metadata level. At `minimal`, replies contain only the annotations that a client needs (OData
 * JSON format 3.1).
 */
export function jsonMediaType(level: 'none' | 'minimal' | 'full' = 'minimal'): string {
  return `application/json; odata.metadata=${level}`
}

const odataHeaders = { 'Content-Type': jsonMediaType(), 'OData-Version': '4.0' }

export function jsonReply(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers: { ...odataHeaders, ...headers }, body }
}

/**
 * Builds an error reply in the OData form (OData JSON format 21.1). Of the codes of the service, only ATT_VAL_2 and ATT_VAL_3 are known.
 */
export function odataError(
  status: number,
  code: string,
  message: string,
  details: readonly ErrorDetail[] = [],
): Reply {
  const error = details.length === 0 ? { code, message } : { code, message, details }
  return jsonReply(status, JSON.stringify({ error }))
}

/** Builds an error reply of the gateway in front of the service (service-facts 9, 12). */
export function gatewayError(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return {
    status,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ statusCode: status, message }),
  }
}

/** Builds the reply of the gateway to a call over the rate limit (service-facts 9). */
export function rateLimitReply(retryAfterSeconds: number): Reply {
  const message = `Rate limit is exceeded. Try again in ${retryAfterSeconds} seconds.`
  return gatewayError(429, message, { 'Retry-After': String(retryAfterSeconds) })
}

/** The reply for an unknown path, and for a path to an entity that does not exist. */
export const notFound: Reply = odataError(
  404,
  'NotFound',
  'No resource of the service has this path. Nothing was read or changed. Check the path.',
)

/** Builds the 405 reply. HEAD is allowed wherever GET is. */
export function methodNotAllowed(...methods: string[]): Reply {
  const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
  const reply = odataError(
    405,
    'MethodNotAllowed',
    `The resource allows only ${allowed}. Nothing was read or changed. Use one of these methods.`,
  )
  return { ...reply, headers: { ...reply.headers, Allow: allowed } }
}

/** Returns the gateway's refusal of a token that lacks the domain (service-facts 12), or `undefined` for any other token. */
export function refuseDomain(
  { domains }: { readonly domains: ReadonlySet<string> | undefined },
  domain: string,
): Reply | undefined {
  if (domains === undefined || domains.has(domain)) return undefined
  return gatewayError(
    403,
    'Forbidden. The access token does not hold the permission that this resource needs.',
  )
}

export const internalError: Reply = odataError(
  500,
  'InternalError',
  'The sandbox failed on this request. A write may have been applied. Report a bug.',
)

/** The error codes of the sandbox for errors that shared modules throw. */
const codes: Readonly<Record<string, string>> = {
  ADP_QUERY: 'InvalidQuery',
  ADP_TOO_LARGE: 'PayloadTooLarge',
  ADP_CONTENT_ENCODING: 'UnsupportedMediaType',
  ADP_MEDIA_TYPE: 'UnsupportedMediaType',
}

export function faultReply({ code, message, at, status }: AdapterError): Reply {
  if (errorRules[code].class === 'internal') return internalError
  const own = codes[code] ?? 'BadRequest'
  const target = code === 'ADP_QUERY' ? (at.path ?? 'query') : at.path
  return odataError(status, own, message, target === undefined ? [] : [{ code: own, message, target }])
}
