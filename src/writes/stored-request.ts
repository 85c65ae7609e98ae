import { createHash } from 'node:crypto'

import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { Partner } from '../partners/partner.ts'
import { isGenericClient } from '../v2/index.ts'

/** All facts besides the body that decide what a write request posts and how it is answered. */
export type WriteRequest = Readonly<z.infer<typeof requestSchema>>

const requestSchema = z.object({
  /** `batch` for a multipart body, `record` for one flat record. */
  kind: z.enum(['batch', 'record']),
  contentType: z.string().optional(),
  /** Host names that absolute URLs inside the batch may have, or `undefined` for any host (batch-wire F21). */
  serviceHosts: z.array(z.string()).readonly().optional(),
  context: z.string(),
  layout: z.enum(['flat', 'nested']),
  /** Absolute address of the records for `Location`. `undefined` for a batch in the flat layout, whose reply has no `Location`. */
  recordsUrl: z.string().optional(),
  /** Quirks of the partner at the time of receipt: `dataEnvelope` and `msgtypeResponse`. */
  dataEnvelope: z.boolean(),
  msgtypeResponse: z.boolean(),
  /** Texts of V2's errors by error code, or `undefined` for the adapter's own texts. */
  errorMessages: z.record(z.string(), z.string()).readonly().optional(),
  prefer: z.string(),
  accept: z.string(),
})

/**
 * Collects the facts of a write. The names in `headers` are in lower case. `root` is the address before `/V2/Attendance`, and `records` is
 * the address of the records. The reply to a batch in the flat layout has no `Location` (service.md 4.2).
 */
export function toWriteRequest(
  kind: WriteRequest['kind'],
  partner: Partner,
  headers: { readonly accept?: string | undefined } & Readonly<
    Record<string, string | readonly string[] | undefined>
  >,
  { root, records }: { readonly root: string; readonly records: string },
): WriteRequest {
  const isRecord = kind === 'record'
  const asked = partner.layout === 'auto' ? (isGenericClient(headers) ? 'nested' : 'flat') : partner.layout
  const layout = isRecord ? 'flat' : asked
  const { accept = '', prefer = [], 'content-type': contentType } = headers
  return {
    kind,
    contentType: contentType === undefined ? undefined : String(contentType),
    serviceHosts: isRecord ? undefined : partner.serviceHosts,
    context: `${root}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
    layout,
    recordsUrl: isRecord || layout === 'nested' ? records : undefined,
    dataEnvelope: partner.dataEnvelope,
    msgtypeResponse: partner.msgtypeResponse,
    errorMessages: partner.errorMessages,
    // In a batch, each part has its own preferences.
    prefer: isRecord ? [prefer].flat().join() : '',
    accept: isRecord ? accept : '',
  }
}

export interface BatchIds {
  readonly boundary: string
  /** The boundaries of the envelope that frames the body, and of its changesets. */
  readonly envelope: readonly string[]
}

/** A write request as the journal stores it, so that the request can be finished and answered without its client. */
export type StoredRequest = Readonly<z.infer<typeof headSchema>> & { readonly body: Buffer }

const headSchema = z.object({
  request: requestSchema.readonly(),
  /** The id from which all ids in the reply derive, so that the reply can be written again byte for byte. */
  replyId: z.string(),
  /** SHA-256 of the subscription key and token of the request, by which recovery recognises a client with the same credentials. */
  sender: z.string().optional(),
  /** Present if the batch was first begun for V2: the time of its marks in milliseconds since the epoch. Default: the time of receipt. */
  markedAtMs: z.number().optional(),
  /** Maximum number of records in one `$batch` to V3. `undefined` in requests of older versions, for which the current setting applies. */
  together: z.int().min(1).optional(),
})

/** Returns true for a request that was begun for V2 before V3 served it. */
export const wasOnV2 = ({ markedAtMs }: Pick<StoredRequest, 'markedAtMs'>): boolean =>
  markedAtMs !== undefined

/** Minimum size in bytes of a request whose bytes are shared with the thread of the journal instead of copied. */
const SHARED_FROM = 1_048_576
/** Number of bytes that are copied or hashed at once. Copying or hashing a byte takes a quarter of the time that decoding it takes. */
const CHUNK = 1_048_576
const CHUNK_WORK = CHUNK / 4

/** Encodes a request for the journal: one line of JSON, then the body as received. */
export async function encodeStoredRequest(
  { body, ...facts }: StoredRequest,
  slices: Slices,
): Promise<Buffer> {
  const head = Buffer.from(`${JSON.stringify(facts)}\n`)
  if (body.length < SHARED_FROM) return Buffer.concat([head, body])
  const bytes = Buffer.from(new SharedArrayBuffer(head.length + body.length))
  head.copy(bytes)
  for (let from = 0; from < body.length; from += CHUNK) {
    body.copy(bytes, head.length + from, from, from + CHUNK)
    if (slices.spend(CHUNK_WORK)) await slices.next()
  }
  return bytes
}

/** Decodes a stored request. Throws `ADP_INTERNAL` for bytes that `encodeStoredRequest` did not write. */
export function decodeStoredRequest(payload: Uint8Array): StoredRequest {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const end = bytes.indexOf(0x0a)
  return { ...parseHead(bytes.toString('utf8', 0, Math.max(end, 0))), body: bytes.subarray(end + 1) }
}

/** Returns how a stored request was sent, or an empty object if the request cannot be read. */
export function readSending(payload: Uint8Array | undefined): Pick<StoredRequest, 'sender' | 'together'> {
  if (payload === undefined) return {}
  try {
    return decodeStoredRequest(payload)
  } catch {
    // An unreadable request is not an error here. `runStored` also finds that it cannot be read, and makes its records dead letters.
    return {}
  }
}

function parseHead(text: string): z.infer<typeof headSchema> {
  try {
    return headSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new AdapterError(
      'ADP_INTERNAL',
      'The journal contains a request that this version cannot read. The request was not sent again, but may have been applied. Read the journal with the version that stored the request.',
      {
        cause,
      },
    )
  }
}

/**
 * Computes the SHA-256 of all facts that decide which records are posted, to which service and for whom. Of the media type it includes only
 * the boundary, so that the spelling of the header does not matter. It excludes the adapter's own address and configuration, because the
 * first request decides how the batch is answered. `upstream` is the base address of V3.
 */
export async function digestRequest(
  owner: string,
  upstream: string,
  boundary: string | undefined,
  body: Buffer,
  slices: Slices,
): Promise<Buffer> {
  const hash = createHash('sha256').update(`${JSON.stringify([owner, upstream, boundary ?? null])}\n`)
  for (let from = 0; from < body.length; from += CHUNK) {
    hash.update(body.subarray(from, from + CHUNK))
    if (slices.spend(CHUNK_WORK)) await slices.next()
  }
  return hash.digest()
}

export function digestIds(owner: string, { boundary, envelope }: BatchIds): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([owner, boundary, ...envelope]))
    .digest()
}

/** Creates a function that returns the next id of a reply with each call. The ids are GUIDs that count up from `replyId` plus `from`. */
export function createReplyIds(replyId: string, from = 0): () => string {
  const start = Number.parseInt(replyId.slice(-8), 16) + from
  let count = 0
  return () => {
    const last = (start + count) >>> 0
    count += 1
    return replyId.slice(0, -8) + last.toString(16).padStart(8, '0')
  }
}
