import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

import { errorCodeOf } from '../errors.ts'
import type { Partner } from '../partners/partner.ts'
import { toWriteRequest, type WriteRequest } from '../writes/stored-request.ts'

export interface WireMessage {
  /** The header fields as names and values in turn: `[name, value, name, value, …]`. */
  readonly fields: readonly string[]
  /** The body, or `undefined` if the body was too large to copy or could not be read. */
  readonly body: Buffer | undefined
}

export interface WireReply extends WireMessage {
  readonly status: number
  readonly reason: string
}

export interface WireExchange {
  readonly kind: ExchangeKind
  readonly target: string
  readonly request: WireMessage
  readonly reply: WireReply
  readonly receivedMs: number
  readonly durationMs: number
}

export const exchangeKinds = ['batch', 'record', 'readFilter', 'readKey', 'registrations'] as const
export type ExchangeKind = (typeof exchangeKinds)[number]

/** A write and V2's reply to it. The request has only the fields of `keptFieldsOf`, and its body has no content encoding. */
export interface WireWrite extends Pick<WireExchange, 'target' | 'request' | 'reply' | 'receivedMs'> {
  readonly kind: WriteRequest['kind']
}

export function splitTarget(target: string): readonly [path: string, query: string] {
  const [path = '', query = ''] = target.split(/\?(.*)/s)
  return [path, query]
}

/** Returns the first value of a header field. `name` is in lower case. */
export function fieldOf({ fields }: Pick<WireMessage, 'fields'>, name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
  return at === -1 ? undefined : fields[at + 1]
}

export const pairsOf = ({
  fields,
}: Pick<WireMessage, 'fields'>): readonly (readonly [name: string, value: string])[] =>
  fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ''] as const] : []))

/** The request header fields that are kept, in this order. They affect the meaning of a request and contain no credentials. */
const keptFields = ['Content-Type', 'Accept', 'Prefer', 'OData-Version', 'OData-MaxVersion'] as const
const listFields: ReadonlySet<string> = new Set(['Accept', 'Prefer'])

export function keptFieldsOf(request: Pick<WireMessage, 'fields'>): readonly string[] {
  const pairs = pairsOf(request)
  return keptFields.flatMap((name) => {
    const values = pairs.flatMap(([own, value]) => (own.toLowerCase() === name.toLowerCase() ? [value] : []))
    const value = listFields.has(name) ? values.join(', ') : values[0]
    // A client could put any data into a version field, so only a version number is kept.
    const isKept = !name.startsWith('OData') || /^\d\.\d{1,2}$/.test(value ?? '')
    return values.length > 0 && value !== undefined && isKept ? [name, value] : []
  })
}

export function headersOf(request: Pick<WireMessage, 'fields'>): Readonly<Record<string, string>> {
  return Object.fromEntries(pairsOf(request).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Rebuilds a write as the adapter would have received it. Comparisons ignore the host, so its name is invented. */
export function writeRequestOf({ kind, request, target }: WireWrite, partner: Partner): WriteRequest {
  const root = `http://recorded.invalid${target.slice(0, Math.max(0, target.search(/\/v2\//i)))}`
  const records = `${root}/V2/Attendance/AttendanceRecords`
  return toWriteRequest(kind, partner, headersOf(request), { root, records })
}

const decoders = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** Returns the content encoding of a body in lower case, or `undefined` if the body is not encoded. */
export function encodingOf(message: Pick<WireMessage, 'fields'>): string | undefined {
  const encoding = fieldOf(message, 'content-encoding')?.trim().toLowerCase() ?? ''
  return encoding === '' || encoding === 'identity' ? undefined : encoding
}

/**
 * Decodes a body in the thread pool of zlib. Returns `tooLarge` if the body is missing or decodes to more than `maxBytes`, and `encoding`
 * if it cannot be decoded.
 */
export async function decodeBody(
  message: WireMessage,
  maxBytes: number,
): Promise<Buffer | 'tooLarge' | 'encoding'> {
  const { body } = message
  if (body === undefined) return 'tooLarge'
  const encoding = encodingOf(message)
  if (encoding === undefined) return body
  const decode = decoders.get(encoding)
  if (decode === undefined) return 'encoding'
  try {
    return await decode(body, { maxOutputLength: Math.max(1, maxBytes) })
  } catch (cause) {
    return errorCodeOf(cause) === 'ERR_BUFFER_TOO_LARGE' ? 'tooLarge' : 'encoding'
  }
}
