import { batchPath } from '../../v2/index.ts'
import {
  decodeBody,
  type ExchangeKind,
  keptFieldsOf,
  splitTarget,
  type WireExchange,
  type WireMessage,
  type WireReply,
} from '../wire-exchange.ts'

/** A message whose body was copied, and has no encoding any more. */
export type RecordedMessage = WireMessage & { readonly body: Buffer }

/**
 * A request of a V2 client and the reply to it, as they are recorded. The target begins with the route of V2 (`/V2/Attendance/$batch`): what stands
 * before names an installation. The request has none but the fields of `keptFieldsOf`, and the body of a read is empty.
 */
export interface RecordedExchange extends WireExchange {
  readonly kind: ExchangeKind
  readonly request: RecordedMessage
  readonly reply: WireReply & RecordedMessage
}

const ROUTE = /\/v2\/(?:attendance(?:\/|$)|learnerregist)/i
const MARKS = /\/v2\/attendance\/attendancerecords(?:\(\))?\/?$/i
const COUNT = /\/v2\/attendance\/attendancerecords(?:\(\))?\/\$count\/?$/i
const KEY = /\/v2\/attendance\/attendancerecords\(/i
const REGISTRATIONS = /\/v2\/learnerregistr?ations(?:\(\))?\/?$/i

/** The kind of a request that is recorded; undefined: it is none of V2's marks and registrations. `path` without its query. */
export function recordedKindOf(method: string, path: string): ExchangeKind | undefined {
  if (batchPath.test(path)) return method === 'POST' ? 'batch' : undefined
  if (MARKS.test(path)) return method === 'POST' ? 'record' : method === 'GET' ? 'readFilter' : undefined
  if (method !== 'GET') return undefined
  if (COUNT.test(path)) return 'readFilter'
  if (KEY.test(path)) return 'readKey'
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
  const kind = recordedKindOf(method, splitTarget(target)[0])
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
