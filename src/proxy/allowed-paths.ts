import type { IncomingMessage, ServerResponse } from 'node:http'

import micromatch from 'micromatch'

import { AdapterError } from '../errors.ts'
import { pathOf } from '../http/request-target.ts'

/** A path that is passed through: a glob pattern, in any case, with the methods of its kind or with its own. */
export type AllowedPath = string | { readonly path: string; readonly methods: readonly string[] }

/** Methods that change nothing: what every path takes that is passed through. */
export const readMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/** Kinds of path with other methods (service.md 1.1, 1.2 and 4): everything else of the service is read only. */
const kinds: readonly { readonly pattern: RegExp; readonly methods: readonly string[] }[] = [
  { pattern: /\/\$batch\/?$/i, methods: ['POST'] },
  { pattern: /\/v3\/(?:attendance\/)?attendancerecords\/?$/i, methods: [...readMethods, 'POST'] },
  { pattern: /\/v3\/(?:learner\/)?learnerpersonals(?:\([^/]*\))?\/?$/i, methods: [...readMethods, 'PATCH'] },
]

/**
 * Creates the look-up of the methods that the path of a request takes; undefined for a path that is not on the list. An entry with
 * methods of its own replaces those of the kind. Error: `ADP_PATH`.
 */
export function createAllowedMethods(
  allow: readonly AllowedPath[],
): (request: IncomingMessage) => readonly string[] | undefined {
  const entries = allow.map((entry) => {
    const { path, methods } = typeof entry === 'string' ? { path: entry, methods: undefined } : entry
    // In braces `/**/x` also matches `/x`.
    return { matches: micromatch.matcher(`{${path},}`, { nocase: true, dot: true }), methods }
  })
  return (request) => {
    const path = pathOf(request)
    const found = entries.filter(({ matches }) => matches(path))
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
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[],
): AdapterError {
  const allowed = methods.join(', ')
  response.setHeader('Allow', allowed)
  const isBatch = method === 'POST' && /\/(?:\$|%24)batch\/?(?:\?|$)/i.test(url)
  const hint = isBatch ? ' Batches of V2 are posted to …/V2/Attendance/$batch.' : ''
  return new AdapterError('ADP_METHOD_NOT_ALLOWED', `This path takes ${allowed}.${hint}`)
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
