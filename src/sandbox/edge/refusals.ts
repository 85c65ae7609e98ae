import type { AdapterError } from '../../errors.ts'
import { errorRules } from '../../errors.ts'
import { gatewayError, odataError } from './reply.ts'
import type { Reply } from './reply.ts'
import type { Principal } from '../security/gateway.ts'

/** No resource of the service has the path, or no entity the key. */
export const notFound: Reply = odataError(404, 'NotFound', 'No resource of the service has this path.')

/** The resource is there, its method is another. HEAD goes where GET does. */
export function methodNotAllowed(...methods: string[]): Reply {
  const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
  const reply = odataError(405, 'MethodNotAllowed', `The resource allows ${allowed}.`)
  return { ...reply, headers: { ...reply.headers, Allow: allowed } }
}

/** The gateway's answer to a token that is right but lacks a security domain (service-facts 12); undefined: it holds it. */
export function refuseDomain({ domains }: Principal, domain: string): Reply | undefined {
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
