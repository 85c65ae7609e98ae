import { STATUS_CODES } from 'node:http'

/** The layout of a batch response: all parts directly under the batch (`flat`), or grouped by changeset (`nested`; batch-wire A6). */
export type BatchLayout = 'flat' | 'nested'

export interface PartReply {
  readonly contentId: string | undefined
  readonly contentIdInHttp: boolean
  /** The position of the record's changeset, counted from 1, or `undefined` for a part directly under the batch. */
  readonly changeset: number | undefined
  readonly status: number
  /** The JSON of the body on one line, or `undefined` for a reply without a body (204). */
  readonly json: string | undefined
}

/** Encodes one batch response in pieces. The pieces, joined in order, are the body (batch-wire 2). */
export interface BatchEncoder {
  /** The `Content-Type` of the reply, with one space before `boundary=`, no quotes and no further parameters (batch-wire A1). */
  readonly contentType: string
  part(reply: PartReply): string
  /** Returns the end of the body. For `nested`, the end includes an empty response for each missing changeset up to `changesets`. */
  close(changesets: number): string
}

/**
 * Creates the encoder of one batch response. Lines always end in CRLF, header names are in canonical case, and no header is empty
 * (batch-wire A2). `newId` returns a new guid for each boundary. `msgtypeResponse` adds `msgtype=response` to the Content-Type of each part
 * (RFC 9112 10.2), which @odata/client cannot read. `recordsUrl` is the absolute URL of the records. Without `recordsUrl` no part has a
 * `Location`.
 */
export function createBatchEncoder(
  layout: BatchLayout,
  newId: () => string,
  msgtypeResponse = false,
  recordsUrl?: string,
): BatchEncoder {
  const type = msgtypeResponse ? 'application/http; msgtype=response' : 'application/http'
  const boundary = `batchresponse_${newId()}`
  const encode = (outer: string, reply: PartReply): string => encodePart(outer, type, reply, recordsUrl)
  if (layout === 'flat') {
    return {
      contentType: `multipart/mixed; boundary=${boundary}`,
      part: (reply) => encode(boundary, reply),
      close: () => `--${boundary}--\r\n`,
    }
  }
  let changeset = 0
  let inner: string | undefined
  const closeChangeset = (): string => {
    const end = inner === undefined ? '' : `--${inner}--\r\n`
    inner = undefined
    return end
  }
  const openChangesets = (target: number): string => {
    let text = ''
    while (changeset < target) {
      text += closeChangeset()
      changeset += 1
      inner = `changesetresponse_${newId()}`
      text += `--${boundary}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n`
    }
    return text
  }
  return {
    contentType: `multipart/mixed; boundary=${boundary}`,
    part: (reply) =>
      reply.changeset === undefined
        ? closeChangeset() + encode(boundary, reply)
        : openChangesets(reply.changeset) + encode(inner ?? boundary, reply),
    close: (changesets) => `${openChangesets(changesets)}${closeChangeset()}--${boundary}--\r\n`,
  }
}

/** Encodes the reply to a batch whose ids differ: one empty changeset response for all outcomes (service.md 4.2, last paragraph). */
export function encodeMismatch(newId: () => string): { contentType: string; body: string } {
  const encoder = createBatchEncoder('nested', newId)
  return { contentType: encoder.contentType, body: encoder.close(1) }
}

/** Returns the URL of a created record for `Location` (OData 4.01 Protocol 8.3.4), or `undefined` for other replies. */
export function locationOf(
  { status, json = '' }: Pick<PartReply, 'status' | 'json'>,
  recordsUrl: string | undefined,
): string | undefined {
  if (status !== 201 || recordsUrl === undefined) return undefined
  const [, id] = /"ExternalID":"([0-9A-Fa-f-]{36})"/.exec(json) ?? []
  return id === undefined ? undefined : `${recordsUrl}(${id})`
}

function encodePart(
  boundary: string,
  type: string,
  reply: PartReply,
  recordsUrl: string | undefined,
): string {
  const location = locationOf(reply, recordsUrl)
  const id = reply.contentId === undefined ? '' : `Content-ID: ${reply.contentId}\r\n`
  const content =
    reply.json === undefined
      ? '\r\n\r\n' // The first line end is the blank line after the headers. The second belongs to the delimiter.
      : 'Content-Type: application/json; odata.metadata=minimal\r\n' +
        `Content-Length: ${Buffer.byteLength(reply.json)}\r\n\r\n${reply.json}\r\n`
  return (
    `--${boundary}\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: binary\r\n${id}\r\n` +
    `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? 'Unknown'}\r\n${reply.contentIdInHttp ? id : ''}` +
    (location === undefined ? content : `Location: ${location}\r\n${content}`)
  )
}
