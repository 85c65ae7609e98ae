import { batchPath, isGenericClient } from '../../v2/index.ts'
import { decodeBody, fieldOf, type WireExchange, type WireMessage, type WireReply } from '../wire-exchange.ts'

/** Kinds of requests that are recorded. */
export const recordedKinds = ['batch', 'record', 'readFilter', 'readKey', 'registrations'] as const
export type RecordedKind = (typeof recordedKinds)[number]

/** A message whose body was copied, and has no encoding any more. */
export type RecordedMessage = WireMessage & { readonly body: Buffer }

/**
 * A request of a V2 client and the reply to it, as they are recorded. The target begins with the route of V2 (`/V2/Attendance/$batch`): what stands
 * before names an installation. The request has none but `keptFields`, and the body of a read is empty.
 */
export interface RecordedExchange extends WireExchange {
  readonly kind: RecordedKind
  readonly request: RecordedMessage
  readonly reply: WireReply & RecordedMessage
}

/** True for a client that `layout: auto` answers in the nested layout. */
export function isGeneric({ request }: Pick<RecordedExchange, 'request'>): boolean {
  return isGenericClient(headersOf(request))
}

/** The fields of a request that was recorded, none of which it has twice, by their names in lower case. */
export function headersOf({ fields }: RecordedMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(pairsOf({ fields }).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Fields of a request that are recorded, in this order. */
const keptFields = ['Content-Type', 'Accept', 'Prefer', 'OData-Version', 'OData-MaxVersion'] as const

/** What is recorded of the fields of a request. */
export function keptFieldsOf(request: Pick<WireMessage, 'fields'>): readonly string[] {
  return keptFields.flatMap((name) => {
    const value = fieldOf(request, name.toLowerCase())
    // Any other value may hold something else than a version.
    const isKept = !name.startsWith('OData') || /^\d\.\d{1,2}$/.test(value ?? '')
    return value !== undefined && isKept ? [name, value] : []
  })
}

/** Fields as pairs of name and value. */
export const pairsOf = ({
  fields,
}: Pick<WireMessage, 'fields'>): readonly (readonly [name: string, value: string])[] =>
  fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? ''] as const] : []))

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
export async function toRecorded(
  wire: WireExchange,
  maxBytes: number,
): Promise<RecordedExchange | undefined> {
  const { method, target, request, reply } = wire
  const kind = recordedKindOf(method, target.split('?', 1)[0] ?? '')
  const from = target.search(ROUTE)
  if (kind === undefined || from === -1) return undefined
  const body = await plainOf(request, maxBytes)
  const replyBody = await plainOf(reply, maxBytes)
  if (body === undefined || replyBody === undefined) return undefined
  return {
    ...wire,
    kind,
    target: target.slice(from),
    request: { fields: keptFieldsOf(request), body },
    reply: { ...reply, body: replyBody },
  }
}

/** Undefined for what is cut off, too large, or not what its field says: it is not a case that could be read again. */
async function plainOf(message: WireMessage, maxBytes: number): Promise<Buffer | undefined> {
  if (message.body?.length === 0) return message.body
  const plain = await decodeBody(message, maxBytes)
  return Buffer.isBuffer(plain) ? plain : undefined
}
