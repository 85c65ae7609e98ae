import type { IncomingMessage } from 'node:http'

import { connectionOptions, hopByHopHeaders } from '../http/hop-by-hop.ts'
import { isRemovedField } from './forwarding.ts'

/** The fields of a message for the next hop: name, value, name, value, as `rawHeaders` has them. */
export type RawFields = string[]

export interface RequestFieldOptions {
  /** Host and port of V2. */
  readonly host: string
  /** Ask for a reply that is not encoded, since links in it change. */
  readonly identity: boolean
}

/** The fields of a reply, and what they say about its body. */
export interface ReplyFields {
  readonly fields: RawFields
  /** Where `Content-Length` stands in the fields, or -1. */
  readonly lengthAt: number
  readonly isChunked: boolean
  /** JSON that is not encoded. */
  readonly isPlainJson: boolean
  /** The field `Keep-Alive`. */
  readonly keepAlive: string | undefined
}

/** Reads the fields of relayed messages. */
export interface RelayedFields {
  toV2(request: IncomingMessage, options: RequestFieldOptions): RawFields
  toClient(reply: IncomingMessage, request: IncomingMessage): ReplyFields
  /** The trailers that go on, as pairs. */
  trailersOf(message: IncomingMessage): [name: string, value: string][]
}

/** How a field is treated; `fixed`: also where `Connection` names it, since the next hop would read another message without it. */
type FieldUse =
  | 'kept'
  | 'fixed'
  | 'dropped'
  | 'connection'
  | 'keepAlive'
  | 'host'
  | 'te'
  | 'trailer'
  | 'transferEncoding'
  | 'contentLength'
  | 'acceptEncoding'
  | 'contentType'
  | 'contentEncoding'

interface FieldName {
  readonly lower: string
  readonly use: FieldUse
  /** It ends at each hop. */
  readonly isHop: boolean
}

const USES: Readonly<Record<string, FieldUse>> = {
  connection: 'connection',
  'keep-alive': 'keepAlive',
  host: 'host',
  te: 'te',
  trailer: 'trailer',
  'transfer-encoding': 'transferEncoding',
  'content-length': 'contentLength',
  'accept-encoding': 'acceptEncoding',
  'content-type': 'contentType',
  'content-encoding': 'contentEncoding',
  authorization: 'fixed',
  'ocp-apim-subscription-key': 'fixed',
  // The adapter has answered it.
  expect: 'dropped',
}
/** The adapter's own, as pass-through sends them: `replaceForwarding` has set the first three. */
const FORWARDED = [
  ['X-Forwarded-For', 'x-forwarded-for'],
  ['X-Forwarded-Proto', 'x-forwarded-proto'],
  ['X-Forwarded-Host', 'x-forwarded-host'],
] as const
const MAX_KNOWN = 500
const MAX_KNOWN_LENGTH = 64
const KEPT_CONNECTION = /^(?:keep-alive|close)?$/i
const TRAILERS = /(?:^|,)\s*trailers\s*(?:;|,|$)/i
const ENDS_CHUNKED = /(?:^|,)\s*chunked\s*$/i
const JSON_TYPE = /^application\/json\b/i
const NO_NAMES: readonly string[] = []

/** Creates the reader; it remembers how common names are treated, since every message has the same ones. */
export function createRelayedFields(): RelayedFields {
  const known = new Map<string, FieldName>()
  const look = (name: string): FieldName => {
    const found = known.get(name)
    if (found !== undefined) return found
    const field = classify(name)
    if (known.size >= MAX_KNOWN) known.clear()
    if (name.length <= MAX_KNOWN_LENGTH) known.set(name, field)
    return field
  }
  return {
    toV2: (request, options) => toV2(look, request, options),
    toClient: (reply, request) => toClient(look, reply, request),
    trailersOf: ({ rawTrailers }) => trailersOf(look, rawTrailers),
  }
}

type Look = (name: string) => FieldName

function classify(name: string): FieldName {
  const lower = name.toLowerCase()
  const use = Object.hasOwn(USES, lower) ? USES[lower] : undefined
  const isHop = hopByHopHeaders.has(lower)
  return { lower, isHop, use: use ?? (isHop || isRemovedField(lower) ? 'dropped' : 'kept') }
}

/** Names, order and repetition as the client wrote them; forwarding fields are replaced by the adapter's own at the end. */
function toV2(look: Look, request: IncomingMessage, { host, identity }: RequestFieldOptions): RawFields {
  const { rawHeaders: raw, headers } = request
  const named = namedBy(headers.connection)
  const isChunked = headers['transfer-encoding'] !== undefined
  const fields: RawFields = []
  let hasHost = false
  let isIdentity = false
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    let value = raw[at + 1] ?? ''
    const { lower, use } = look(name)
    if (use === 'dropped' || use === 'connection' || use === 'keepAlive') continue
    if (use === 'host') {
      if (hasHost) continue
      hasHost = true
      value = host
    } else if (use === 'te') {
      if (!TRAILERS.test(value)) continue
      value = 'trailers'
    } else if (use === 'trailer') {
      if (!isChunked) continue
    } else if (use === 'acceptEncoding' && identity) {
      if (isIdentity) continue
      isIdentity = true
      value = 'identity'
    } else if (use !== 'fixed' && use !== 'transferEncoding' && use !== 'contentLength') {
      if (named.length > 0 && named.includes(lower)) continue
    }
    fields.push(name, value)
  }
  if (!hasHost) fields.unshift('Host', host)
  for (const [name, key] of FORWARDED) {
    const value = headers[key]
    if (typeof value === 'string' && value !== '') fields.push(name, value)
  }
  // RFC 9110 10.1.4: `TE` is named in `Connection`.
  if (headers.te !== undefined && TRAILERS.test(String(headers.te))) fields.push('Connection', 'TE')
  return fields
}

function toClient(look: Look, reply: IncomingMessage, request: IncomingMessage): ReplyFields {
  const { rawHeaders: raw, statusCode = 0 } = reply
  const { connection, coding, keepAlive } = hopFieldsOf(look, raw)
  const named = namedBy(connection)
  // HTTP/1.0 knows no chunks, and these replies have no body (RFC 9112 6.1).
  const isChunked =
    coding !== undefined &&
    ENDS_CHUNKED.test(coding) &&
    request.httpVersion !== '1.0' &&
    statusCode !== 204 &&
    statusCode !== 304
  const fields: RawFields = []
  let lengthAt = -1
  let isJson = false
  let isEncoded = false
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    const value = raw[at + 1] ?? ''
    const { lower, use, isHop } = look(name)
    if (use === 'transferEncoding' || use === 'trailer') {
      if (!isChunked) continue
    } else if (use === 'contentLength') {
      lengthAt = fields.length
    } else {
      if (isHop) continue
      if (named.length > 0 && named.includes(lower)) continue
      if (use === 'contentType') isJson = JSON_TYPE.test(value)
      else if (use === 'contentEncoding') isEncoded ||= value.toLowerCase() !== 'identity'
    }
    fields.push(name, value)
  }
  return { fields, lengthAt, isChunked, isPlainJson: isJson && !isEncoded, keepAlive }
}

/** What decides about the other fields and the connection; of a field that is repeated, all values. */
function hopFieldsOf(look: Look, raw: readonly string[]) {
  let connection: string | undefined
  let coding: string | undefined
  let keepAlive: string | undefined
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const { use } = look(raw[at] ?? '')
    if (use === 'connection') connection = joined(connection, raw[at + 1])
    else if (use === 'transferEncoding') coding = joined(coding, raw[at + 1])
    else if (use === 'keepAlive') keepAlive = joined(keepAlive, raw[at + 1])
  }
  return { connection, coding, keepAlive }
}

function joined(before: string | undefined, value = ''): string {
  return before === undefined ? value : `${before}, ${value}`
}

/** Framing, credentials and routing do not belong into trailers (RFC 9110 6.5.1). */
function trailersOf(look: Look, raw: readonly string[]): [string, string][] {
  const trailers: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    if (look(name).use === 'kept') trailers.push([name, raw[at + 1] ?? ''])
  }
  return trailers
}

function namedBy(connection: string | undefined): readonly string[] {
  return connection === undefined || KEPT_CONNECTION.test(connection)
    ? NO_NAMES
    : connectionOptions(connection)
}
