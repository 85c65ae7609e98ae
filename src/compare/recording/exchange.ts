import type { Side } from '../../rollout/index.ts'
import { batchPath, isGenericClient } from '../../v2/index.ts'
import { decodeBody, contentEncoding } from '../plain-body.ts'

/** Kinds of requests that are recorded. */
export const recordedKinds = ['batch', 'record', 'readFilter', 'readKey', 'registrations'] as const
export type RecordedKind = (typeof recordedKinds)[number]

/** A request of a V2 client and the reply to it, as they are recorded. */
export interface Exchange {
  readonly kind: RecordedKind
  /** The side that served it; a reply for which V3 served was built by the adapter. */
  readonly served: Side
  readonly method: string
  /** From the route of V2 on, with the query: `/V2/Attendance/$batch`. What stands before names an installation. */
  readonly target: string
  readonly contentType: string | undefined
  readonly accept: string | undefined
  readonly prefer: string | undefined
  /** `OData-Version` and `OData-MaxVersion`, where they are versions. */
  readonly odataVersion: string | undefined
  readonly odataMaxVersion: string | undefined
  /** Decompressed; empty for a read. */
  readonly body: Buffer
  readonly reply: {
    readonly status: number
    readonly reason: string
    /** Name and value, without those that are not on the list of kept headers. */
    readonly headers: Headers
    /** Decompressed. */
    readonly body: Buffer
  }
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** From the arrival of the request to the end of the reply. */
  readonly durationMs: number
}

export type Headers = readonly (readonly [name: string, value: string])[]

/** True for a client that `layout: auto` answers in the nested layout. */
export function isGeneric({ accept, odataVersion, odataMaxVersion }: Exchange): boolean {
  return isGenericClient({ accept, 'odata-version': odataVersion, 'odata-maxversion': odataMaxVersion })
}

/** The header of a message, the first of its name; `name` in lower case. */
export function headerOf(headers: Headers, name: string): string | undefined {
  return headers.find(([own]) => own.toLowerCase() === name)?.[1]
}

/** What an exchange has of the headers of its request. */
export function keptHeadersOf(
  headers: Headers,
): Pick<Exchange, 'contentType' | 'accept' | 'prefer' | 'odataVersion' | 'odataMaxVersion'> {
  // Any other value may hold something else than a version.
  const versionOf = (name: string): string | undefined =>
    /^\d\.\d{1,2}$/.exec(headerOf(headers, name) ?? '')?.[0]
  return {
    contentType: headerOf(headers, 'content-type'),
    accept: headerOf(headers, 'accept'),
    prefer: headerOf(headers, 'prefer'),
    odataVersion: versionOf('odata-version'),
    odataMaxVersion: versionOf('odata-maxversion'),
  }
}

/** A message as it was on the wire. */
interface WireMessage {
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  /** Undefined: it was too large to be copied. */
  readonly body: Buffer | undefined
}

/** An exchange as it was on the wire. */
export interface WireExchange {
  readonly method: string
  readonly target: string
  readonly request: WireMessage
  readonly reply: WireMessage & { readonly status: number; readonly reason: string }
  /** The side that served the client. */
  readonly served: Side
  readonly receivedMs: number
  readonly durationMs: number
}

const ROUTE = /\/v2\/(?:attendance(?:\/|$)|learnerregist)/i
const MARKS = /\/v2\/attendance\/attendancerecords\/?$/i
const COUNT = /\/v2\/attendance\/attendancerecords\/\$count\/?$/i
const KEY = /\/v2\/attendance\/attendancerecords\(/i
const REGISTRATIONS = /\/v2\/learnerregist(?:r)?ations\/?$/i

/** The kind of a request that is recorded; undefined: it is none of V2's marks and registrations. `path` without its query. */
export function recordedKindOf(method: string, path: string): RecordedKind | undefined {
  if (batchPath.test(path)) return method === 'POST' ? 'batch' : undefined
  if (MARKS.test(path)) return method === 'POST' ? 'record' : method === 'GET' ? 'readFilter' : undefined
  if (method !== 'GET') return undefined
  if (KEY.test(path)) return 'readKey'
  if (COUNT.test(path)) return 'readFilter'
  return REGISTRATIONS.test(path) ? 'registrations' : undefined
}

/**
 * What is recorded of an exchange: from the route of V2 on, decompressed off the event loop. Undefined for one that is not recorded, or whose
 * bodies were not copied or cannot be decompressed within `maxBytes`.
 */
export async function toExchange(wire: WireExchange, maxBytes: number): Promise<Exchange | undefined> {
  const { method, target, request, reply, served, receivedMs, durationMs } = wire
  const kind = recordedKindOf(method, target.split('?', 1)[0] ?? '')
  const from = target.search(ROUTE)
  if (kind === undefined || from === -1) return undefined
  const [headers, replyHeaders] = [pairsOf(request.fields), pairsOf(reply.fields)]
  const body = await plainOf(headers, request.body, maxBytes)
  const replyBody = await plainOf(replyHeaders, reply.body, maxBytes)
  if (body === undefined || replyBody === undefined) return undefined
  const { status, reason } = reply
  return {
    ...{ kind, served, method, target: target.slice(from), ...keptHeadersOf(headers), body },
    reply: { status, reason, headers: replyHeaders, body: replyBody },
    ...{ receivedMs, durationMs },
  }
}

const pairsOf = (fields: readonly string[]): Headers =>
  fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ''] as const] : []))

/** Undefined for what is cut off, too large, or not what its header says: it is not a case that could be read again. */
async function plainOf(
  headers: Headers,
  body: Buffer | undefined,
  maxBytes: number,
): Promise<Buffer | undefined> {
  if (body === undefined || body.length === 0) return body
  const plain = await decodeBody(body, contentEncoding(headerOf(headers, 'content-encoding')), maxBytes)
  return Buffer.isBuffer(plain) ? plain : undefined
}
