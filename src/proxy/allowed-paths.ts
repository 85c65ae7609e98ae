import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { pathOf } from '../http/request-target.ts'
import { createPathTest } from './path-pattern.ts'

/** A path that is passed through: a pattern as `createPathTest` takes it, with the methods of its kind or with its own. */
export type AllowedPath = string | { readonly path: string; readonly methods: readonly string[] }

/** Methods that change nothing: what every path takes that is passed through. */
export const readMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

const BATCH = /\/\$batch\/?$/i

/** Kinds of path with other methods (service.md 1.1, 1.2 and 4): everything else of the service is read only. */
const kinds: readonly { readonly pattern: RegExp; readonly methods: readonly string[] }[] = [
  { pattern: BATCH, methods: ['POST'] },
  { pattern: /\/v3\/(?:attendance\/)?attendancerecords(?:\(\))?\/?$/i, methods: [...readMethods, 'POST'] },
  { pattern: /\/v3\/(?:learner\/)?learnerpersonals(?:\([^/]*\))?\/?$/i, methods: [...readMethods, 'PATCH'] },
]

/**
 * Creates the look-up of the methods that the path of a request takes; undefined for a path that is not on the list. An entry with
 * methods of its own replaces those of the kind. A `$batch` is on the list where an entry names it: this list does not apply to the requests
 * inside a batch. Error: `ADP_PATH`.
 */
export function createAllowedMethods(
  allow: readonly AllowedPath[],
): (request: IncomingMessage) => readonly string[] | undefined {
  const entries = allow.map((entry) => {
    const { path, methods } = typeof entry === 'string' ? { path: entry, methods: undefined } : entry
    return { matches: createPathTest(path), namesBatch: BATCH.test(path), methods }
  })
  return (request) => {
    const path = pathOf(request)
    const isBatch = BATCH.test(path)
    const found = entries.filter(({ matches, namesBatch }) => (namesBatch || !isBatch) && matches(path))
    if (found.length === 0) return undefined
    const own = found.flatMap(({ methods }) => methods ?? [])
    return own.length > 0 ? own : methodsOfKind(path)
  }
}

function methodsOfKind(path: string): readonly string[] {
  return kinds.find(({ pattern }) => pattern.test(path))?.methods ?? readMethods
}

/**
 * The error of a method that a path does not take; `Allow` names those that it takes (RFC 9110 15.5.6). A client whose base address lacks its path
 * is told where batches go.
 */
export function refuseMethod(
  { method, url = '', headers }: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[],
): AdapterError {
  const allowed = methods.join(', ')
  response.setHeader('Allow', allowed)
  const isBatch = method === 'POST' && (/\/(?:\$|%24)batch\/?(?:\?|$)/i.test(url) || isMultipart(headers))
  const hint = isBatch ? ' Nothing was sent. Batches of V2 are posted to …/V2/Attendance/$batch.' : ''
  return new AdapterError('ADP_METHOD_NOT_ALLOWED', `This path takes ${allowed}.${hint}`)
}

function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^\s*multipart\/mixed\b/i.test(headers['content-type'] ?? '')
}

/** What only V2 has: the path in its request lines, the type of its records, and names of their members (service.md 4.2). */
const OF_V2 =
  /\/OData\/V1\/AttendanceRecords|AttendanceService\.Models\.OData|["'](?:AttendableEvent|SchoolAttendanceCode)["']\s{0,64}:/i

/**
 * Creates the check of the first bytes of a body that goes to V3 as it is; undefined for a request that cannot be a batch of V2. The check
 * throws `ADP_PATH` for a batch of V2: it would be written without the journal. Error: `ADP_CONTENT_ENCODING` for bytes that cannot be checked.
 */
export function createBatchCheck({
  method,
  headers,
}: IncomingMessage): ((firstBytes: Buffer) => void) | undefined {
  if (method !== 'POST' || !isMultipart(headers)) return undefined
  if (headers['content-encoding'] !== undefined)
    throw new AdapterError(
      'ADP_CONTENT_ENCODING',
      'A multipart batch for V3 is compressed. Nothing was sent. Send the batch without Content-Encoding.',
    )
  return (firstBytes) => {
    if (OF_V2.test(firstBytes.toString('latin1')))
      throw new AdapterError(
        'ADP_PATH',
        'The body is a batch of V2, and the path is one of V3. Nothing was sent. Send the batch to …/V2/Attendance/$batch.',
      )
  }
}

/** Metadata, and the document that lists the sets of a service. */
const PUBLIC = /\$metadata|^\/?$|\/v\d+(?:\/(?:attendance|learner))?\/?$/i

/**
 * True for a reply that shows that a service takes the credentials of its request: success, for a request that needs some. Services describe
 * themselves to everyone, gateways answer OPTIONS by themselves, and send who is not known elsewhere.
 */
export function showsAcceptance(request: IncomingMessage, status: number): boolean {
  return status >= 200 && status < 300 && request.method !== 'OPTIONS' && !PUBLIC.test(pathOf(request))
}
