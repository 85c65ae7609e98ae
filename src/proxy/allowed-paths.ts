import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { pathOf } from '../http/request-target.ts'
import { createPathTest, segmentsOf } from './path-pattern.ts'

/**
 * An entry of the pass-through list: a pattern for `createPathTest`, with the allowed `methods`. Default: the result of `methodsOfKind`.
 */
export type AllowedPath = string | { readonly path: string; readonly methods: readonly string[] }

/** The methods that a path accepts by default, unless `kinds` names the path. */
export const readMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

const BATCH = /\/\$batch\/?$/i

/** The paths whose default is not `readMethods` (service.md 1.1, 1.2 and 4). Every other path of the service is read-only. */
const kinds: readonly { readonly pattern: RegExp; readonly methods: readonly string[] }[] = [
  { pattern: BATCH, methods: ['POST'] },
  { pattern: /\/v3\/(?:attendance\/)?attendancerecords(?:\(\))?\/?$/i, methods: [...readMethods, 'POST'] },
  { pattern: /\/v3\/(?:learner\/)?learnerpersonals(?:\([^/]*\))?\/?$/i, methods: [...readMethods, 'PATCH'] },
]

/**
 * Creates a function that returns the methods that the path of a request accepts, or `undefined` if the path is not on the list. A `$batch`
 * is allowed only by an entry that names `$batch`, because the list is not applied to the requests inside a batch. Throws `ADP_PATH` if the
 * path cannot be read.
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
    const segments = segmentsOf(path)
    const found = entries.filter(({ matches, namesBatch }) => (namesBatch || !isBatch) && matches(segments))
    if (found.length === 0) return undefined
    const own = found.flatMap(({ methods }) => methods ?? [])
    return own.length > 0 ? own : methodsOfKind(path)
  }
}

function methodsOfKind(path: string): readonly string[] {
  return kinds.find(({ pattern }) => pattern.test(path))?.methods ?? readMethods
}

/** Returns the error for a method that the path does not accept, and sets `Allow` (RFC 9110 15.5.6). */
export function refuseMethod(
  { method, url = '', headers }: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[],
): AdapterError {
  const allowed = methods.join(', ')
  response.setHeader('Allow', allowed)
  const isBatch = method === 'POST' && (/\/(?:\$|%24)batch\/?(?:\?|$)/i.test(url) || isMultipart(headers))
  const remedy = isBatch ? 'Post batches of V2 to …/V2/Attendance/$batch.' : 'Use an accepted method.'
  return new AdapterError(
    'ADP_METHOD_NOT_ALLOWED',
    `This path accepts only ${allowed}. Nothing was sent. ${remedy}`,
  )
}

function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^\s*multipart\/mixed\b/i.test(headers['content-type'] ?? '')
}

/** Matches text that only requests of V2 contain: the path of a record, its type, or a member of a flat record (service.md 4.2). */
const OF_V2 =
  /\/OData\/V1\/AttendanceRecords|AttendanceService\.Models\.OData|["'](?:AttendableEvent|SchoolAttendanceCode)["']\s{0,64}:/i

/**
 * Creates a check of the first bytes of a body that is passed through to V3, or returns `undefined` if the request cannot be a batch. The
 * check throws `ADP_PATH` for a batch of V2, whose records would bypass the journal. A compressed batch cannot be checked and gets
 * `ADP_CONTENT_ENCODING` at once.
 */
export function createBatchCheck({
  method,
  headers,
}: IncomingMessage): ((firstBytes: Buffer) => void) | undefined {
  if (method !== 'POST' || !isMultipart(headers)) return undefined
  if (headers['content-encoding'] !== undefined)
    throw new AdapterError(
      'ADP_CONTENT_ENCODING',
      'A multipart batch for V3 must not be compressed. Nothing was sent. Send the batch without Content-Encoding.',
    )
  return (firstBytes) => {
    if (OF_V2.test(firstBytes.toString('latin1')))
      throw new AdapterError(
        'ADP_PATH',
        'The body is a batch of V2, but the path belongs to V3. Nothing was sent. Send the batch to …/V2/Attendance/$batch.',
      )
  }
}

/** Matches the paths of metadata and service documents, which services show to every caller. */
const PUBLIC = /\$metadata|^\/?$|\/v\d+(?:\/(?:attendance|learner))?\/?$/i

/**
 * Returns true if a status shows that the service accepted the credentials. Gateways answer OPTIONS themselves, so OPTIONS shows nothing.
 */
export function showsAcceptance(request: IncomingMessage, status: number): boolean {
  return status >= 200 && status < 300 && request.method !== 'OPTIONS' && !PUBLIC.test(pathOf(request))
}
