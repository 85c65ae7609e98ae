import type { IncomingMessage } from 'node:http'

import type { RequestKind } from '../rollout/index.ts'
import { batchPath } from '../v2/index.ts'
import type { Handle } from './exchange.ts'
import {
  handleReadCount,
  handleReadField,
  handleReadMark,
  handleReadMetadata,
  handleReadPage,
  handleReadRegistrations,
  handleReadServiceDocument,
} from './handle-read.ts'
import { handleWrite } from './write-handler.ts'

/** A path of the V2 interface, under any prefix and in any case (product contract: paths). */
export interface Route {
  readonly pattern: RegExp
  /** Segments that the pattern covers. */
  readonly segments: number
  /** The kind of its requests; a POST to the set of records is a `record`. */
  readonly kind: RequestKind
  /** The methods that are translated. */
  readonly handlers: Readonly<Record<string, Handle>>
}

const routes: readonly Route[] = [
  { pattern: batchPath, segments: 3, kind: 'batch', handlers: { POST: handleWrite } },
  {
    pattern: /\/v2\/attendance\/attendancerecords\/?$/i,
    segments: 3,
    kind: 'readFilter',
    handlers: { GET: handleReadPage, POST: handleWrite },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\([^/]*\/?$/i,
    segments: 3,
    kind: 'readKey',
    handlers: { GET: handleReadMark },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\([^/]*\)(?:\/[^/]+)+\/?$/i,
    segments: 4,
    kind: 'readKey',
    handlers: { GET: handleReadField },
  },
  {
    pattern: /\/v2\/attendance\/attendancerecords\/\$count\/?$/i,
    segments: 4,
    kind: 'readFilter',
    handlers: { GET: handleReadCount },
  },
  {
    pattern: /\/v2\/attendance\/\$metadata\/?$/i,
    segments: 3,
    kind: 'documents',
    handlers: { GET: handleReadMetadata },
  },
  {
    pattern: /\/v2\/attendance\/?$/i,
    segments: 2,
    kind: 'documents',
    handlers: { GET: handleReadServiceDocument },
  },
  {
    pattern: /\/v2\/learnerregistr?ations(?:\([^/]*)?(?:\/[^/]*)*$/i,
    segments: 2,
    kind: 'registrations',
    handlers: { GET: handleReadRegistrations },
  },
]

const V2_SEGMENT = /\/v2\//i

/** The route of a decoded path; undefined: it goes to V3 as it is. */
export function findRoute(path: string): Route | undefined {
  return V2_SEGMENT.test(path) ? routes.find(({ pattern }) => pattern.test(path)) : undefined
}

/** The kind of a request, by which its stage decides who serves it. */
export function kindOf(route: Route | undefined, path: string, { method }: IncomingMessage): RequestKind {
  if (route === undefined) return V2_SEGMENT.test(path) ? 'otherV2' : 'v3Path'
  return route.kind === 'readFilter' && method === 'POST' ? 'record' : route.kind
}

/** The handler of a request's method. HEAD goes where GET does; Node leaves out the body (RFC 9110 9.3.2). */
export function handlerOf({ handlers }: Route, { method = '' }: IncomingMessage): Handle | undefined {
  return handlers[method === 'HEAD' ? 'GET' : method]
}

/** The methods of a route. */
export function methodsOf({ handlers }: Route): string[] {
  return Object.keys(handlers).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
}
