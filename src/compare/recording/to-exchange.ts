import { promisify } from 'node:util'
import { brotliDecompress, constants, unzip } from 'node:zlib'

import type { Side } from '../../rollout/index.ts'
import { batchPath } from '../../v2/index.ts'
import { type Exchange, type RecordedKind, versionOf } from './exchange.ts'

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
  const { method, target, request, reply, served } = wire
  const path = target.split('?', 1)[0] ?? ''
  const kind = recordedKindOf(method, path)
  const from = target.search(ROUTE)
  if (kind === undefined || from === -1) return undefined
  const body = await plainOf(request, maxBytes)
  const replyBody = await plainOf(reply, maxBytes)
  if (body === undefined || replyBody === undefined) return undefined
  const field = (name: string): string | undefined => fieldOf(request.fields, name)
  return {
    kind,
    served,
    method,
    target: target.slice(from),
    contentType: field('content-type'),
    accept: field('accept'),
    prefer: field('prefer'),
    odataVersion: versionOf(field('odata-version')),
    odataMaxVersion: versionOf(field('odata-maxversion')),
    body,
    reply: { status: reply.status, reason: reply.reason, headers: pairsOf(reply.fields), body: replyBody },
    receivedMs: wire.receivedMs,
    durationMs: wire.durationMs,
  }
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  return pairsOf(fields).find(([own]) => own.toLowerCase() === name)?.[1]
}

const pairsOf = (fields: readonly string[]): readonly (readonly [name: string, value: string])[] =>
  fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ''] as const] : []))

const decoders = { unzip: promisify(unzip), brotli: promisify(brotliDecompress) }

async function plainOf({ fields, body }: WireMessage, maxOutputLength: number): Promise<Buffer | undefined> {
  const encoding = fieldOf(fields, 'content-encoding')?.trim().toLowerCase()
  if (body === undefined || encoding === undefined || encoding === 'identity' || body.length === 0)
    return body
  try {
    if (encoding === 'gzip' || encoding === 'x-gzip' || encoding === 'deflate')
      return await decoders.unzip(body, { maxOutputLength })
    if (encoding !== 'br') return undefined
    const flush = constants.BROTLI_OPERATION_FLUSH
    return await decoders.brotli(body, { maxOutputLength, finishFlush: flush })
  } catch {
    // Cut off, too large, or not what its header says: it is not a case that could be read again.
    return undefined
  }
}
