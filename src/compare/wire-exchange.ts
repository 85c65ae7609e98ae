import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

import { errorCodeOf } from '../errors.ts'
import type { Partner } from '../partners/partner.ts'
import { toWriteRequest, type WriteRequest } from '../writes/stored-request.ts'

/** A message as it was on the connection of a client. */
export interface WireMessage {
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  /** Undefined: it was too large to be copied, or cannot be read. */
  readonly body: Buffer | undefined
}

export interface WireReply extends WireMessage {
  readonly status: number
  readonly reason: string
}

/** A request of a client and the reply to it. */
export interface WireExchange {
  readonly kind: ExchangeKind
  /** Path and query, as the client wrote them. */
  readonly target: string
  readonly request: WireMessage
  readonly reply: WireReply
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** From the arrival of the request to the end of the reply. */
  readonly durationMs: number
}

/** Kinds of requests that are compared and recorded. */
export const exchangeKinds = ['batch', 'record', 'readFilter', 'readKey', 'registrations'] as const
export type ExchangeKind = (typeof exchangeKinds)[number]

/** A write with V2's reply. Of the request the fields are those of `keptFieldsOf`, and the body has no encoding. */
export interface WireWrite extends Pick<WireExchange, 'target' | 'request' | 'reply' | 'receivedMs'> {
  readonly kind: WriteRequest['kind']
}

/** Path and query of a target, the query without `?`. */
export function splitTarget(target: string): readonly [path: string, query: string] {
  const [path = '', query = ''] = target.split(/\?(.*)/s)
  return [path, query]
}

/** The first value of a field. `name` in lower case. */
export function fieldOf({ fields }: Pick<WireMessage, 'fields'>, name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
  return at === -1 ? undefined : fields[at + 1]
}

/** Fields as pairs of name and value. */
export const pairsOf = ({
  fields,
}: Pick<WireMessage, 'fields'>): readonly (readonly [name: string, value: string])[] =>
  fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ''] as const] : []))

/** Fields of a request that are kept, in this order: they decide what it means, and none holds a credential. */
const keptFields = ['Content-Type', 'Accept', 'Prefer', 'OData-Version', 'OData-MaxVersion'] as const
const listFields: ReadonlySet<string> = new Set(['Accept', 'Prefer'])

/** What is kept of the fields of a request, each once. */
export function keptFieldsOf(request: Pick<WireMessage, 'fields'>): readonly string[] {
  const pairs = pairsOf(request)
  return keptFields.flatMap((name) => {
    const values = pairs.flatMap(([own, value]) => (own.toLowerCase() === name.toLowerCase() ? [value] : []))
    const value = listFields.has(name) ? values.join(', ') : values[0]
    // Any other value may hold something else than a version.
    const isKept = !name.startsWith('OData') || /^\d\.\d{1,2}$/.test(value ?? '')
    return values.length > 0 && value !== undefined && isKept ? [name, value] : []
  })
}

/** The kept fields of a request by their names in lower case. */
export function headersOf(request: Pick<WireMessage, 'fields'>): Readonly<Record<string, string>> {
  return Object.fromEntries(pairsOf(request).map(([name, value]) => [name.toLowerCase(), value]))
}

/** A write as the adapter would have taken it. Its host is that of no installation, and only what follows it is compared. */
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

/** The encoding of the body of a message, in lower case; undefined: it has none. */
export function encodingOf(message: Pick<WireMessage, 'fields'>): string | undefined {
  const encoding = fieldOf(message, 'content-encoding')?.trim().toLowerCase() ?? ''
  return encoding === '' || encoding === 'identity' ? undefined : encoding
}

/** The body of a message without its encoding, decoded off the event loop; why it cannot be read, or has more than `maxBytes` without it. */
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
