import { type AdapterError, type ErrorDetail, errorRules } from '../../errors.ts'

/** An answer before it is on the wire. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** Media type of data: by default with the annotations a client needs and no more (OData JSON format 3.1). */
export function jsonMediaType(level: 'none' | 'minimal' | 'full' = 'minimal'): string {
  return `application/json; odata.metadata=${level}`
}

const odataHeaders = { 'Content-Type': jsonMediaType(), 'OData-Version': '4.0' }

/** A JSON answer of the data service; `body` is JSON text. */
export function jsonReply(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return { status, headers: { ...odataHeaders, ...headers }, body }
}

/**
 * An error of the data service in the OData form (OData JSON format 21.1), which service-facts 12 expects of V3.
 * Codes that the service shows are ATT_VAL_2 and ATT_VAL_3; all others are this sandbox's own.
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

/** An error of the gateway in front of the service (service-facts 9, 12). */
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

/** The gateway's refusal of a call too many (service-facts 9). */
export function rateLimitReply(retryAfterSeconds: number): Reply {
  const message = `Rate limit is exceeded. Try again in ${retryAfterSeconds} seconds.`
  return gatewayError(429, message, { 'Retry-After': String(retryAfterSeconds) })
}

/** No resource of the service has the path, or no entity the key. */
export const notFound: Reply = odataError(404, 'NotFound', 'No resource of the service has this path.')

/** The resource is there, its method is another. HEAD goes where GET does. */
export function methodNotAllowed(...methods: string[]): Reply {
  const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
  const reply = odataError(405, 'MethodNotAllowed', `The resource allows ${allowed}.`)
  return { ...reply, headers: { ...reply.headers, Allow: allowed } }
}

/** The gateway's answer to a token that is right but lacks a security domain (service-facts 12); undefined: it holds it. */
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

/** The sandbox itself failed. */
export const internalError: Reply = odataError(500, 'InternalError', 'The sandbox failed on this request.')

/** Codes of this service for faults that a shared layer found. */
const codes: Readonly<Record<string, string>> = {
  ADP_QUERY: 'InvalidQuery',
  ADP_TOO_LARGE: 'PayloadTooLarge',
  ADP_CONTENT_ENCODING: 'UnsupportedMediaType',
  ADP_MEDIA_TYPE: 'UnsupportedMediaType',
}

/** A fault that was thrown, in the form of the data service. */
export function faultReply({ code, message, at, status }: AdapterError): Reply {
  if (errorRules[code].class === 'internal') return internalError
  const own = codes[code] ?? 'BadRequest'
  const target = code === 'ADP_QUERY' ? (at.path ?? 'query') : at.path
  return odataError(status, own, message, target === undefined ? [] : [{ code: own, message, target }])
}
