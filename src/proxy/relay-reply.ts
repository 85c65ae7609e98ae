import { type ServerResponse, validateHeaderValue } from 'node:http'

import { AdapterError } from '../errors.ts'
import { connectionOptions, hopByHopHeaders } from '../http/hop-by-hop.ts'
import type { ReplyHead } from '../upstream/index.ts'
import { holdsCredential } from './added-credentials.ts'
import { endJoined } from './end-joined.ts'
import type { LinkRewriter } from './link-rewriter.ts'

/** How a reply is sent on. */
export interface RelayOptions {
  /** Credentials that the adapter has lent the client: a field that holds one stays behind. Bodies are not searched. */
  readonly added: readonly string[]
  /** Undefined: links stay as they are. */
  readonly createRewriter: (() => LinkRewriter) | undefined
  /** Called when the client has read the data for which `data` returned false. */
  readonly onDrain: () => void
}

interface SentHead {
  readonly status: number
  readonly reason: string
  readonly fields: string[]
  /** Where `Content-Length` stands in the fields, or -1. */
  readonly lengthAt: number
}

const KEPT_CONNECTION = /^(?:keep-alive|close)?$/i
const JSON_TYPE = /^application\/json\b/i

/**
 * Sends a reply on: status, end-to-end fields in their order and case, and bytes. The head leaves with the first bytes of the
 * body that come in the same turn of the event loop: a short reply is one write, with its length, also after links changed.
 */
export class ReplyRelay {
  private readonly response: ServerResponse
  private readonly options: RelayOptions
  /** The head of a body whose links change, as long as its length may still be known in time. */
  private head: SentHead | undefined
  private rewriter: LinkRewriter | undefined
  /** True in the turn of the event loop in which the head was received. */
  private isFresh = false
  private first: Buffer | undefined
  private waitsForDrain = false

  constructor(response: ServerResponse, options: RelayOptions) {
    this.response = response
    this.options = options
  }

  /** Takes the head of the reply. Throws Node's error for a status line that cannot be sent. */
  start(head: ReplyHead): void {
    const { added, createRewriter } = this.options
    const { fields, lengthAt, isPlainJson } = readFields(head.fields, added)
    const reason = added.length > 0 && holdsCredential(head.reason, added) ? '' : head.reason
    if (createRewriter !== undefined && isPlainJson) {
      checkStatusLine(head.status, reason)
      this.rewriter = createRewriter()
      this.head = { status: head.status, reason, fields, lengthAt }
    } else {
      this.response.writeHead(head.status, reason, fields)
    }
    this.isFresh = true
    queueMicrotask(() => this.flush())
  }

  /** Sends a piece of the body; false: no more before `onDrain`. */
  data(chunk: Buffer): boolean {
    if (this.isFresh && this.first === undefined) {
      this.first = chunk
      return true
    }
    this.flush()
    return this.write(chunk)
  }

  end(): void {
    const { response, head, first, rewriter } = this
    this.isFresh = false
    this.first = undefined
    if (rewriter === undefined) {
      endJoined(response, first)
      return
    }
    const body = first === undefined ? rewriter.end() : rewriter.write(first, true)
    // Without a body the length is that of another reply, to GET, whose links change: it is not known here.
    if (head !== undefined) this.sendHead(head, first === undefined ? undefined : body.length)
    endJoined(response, body)
  }

  /** Sends what waits for more. */
  private flush(): void {
    const { response, head, first } = this
    if (!this.isFresh) return
    this.isFresh = false
    this.first = undefined
    if (response.destroyed) return
    if (head !== undefined) this.sendHead(head, undefined)
    if (first === undefined) response.flushHeaders()
    else this.write(first)
  }

  private write(chunk: Buffer): boolean {
    const { response, rewriter } = this
    const bytes = rewriter === undefined ? chunk : rewriter.write(chunk)
    if (bytes.length === 0) return !this.waitsForDrain
    if (response.destroyed || response.write(bytes)) return true
    if (!this.waitsForDrain) {
      this.waitsForDrain = true
      response.once('drain', () => {
        this.waitsForDrain = false
        this.options.onDrain()
      })
    }
    return false
  }

  /** Sends the head with the length of the body; undefined: it is not known before the end. */
  private sendHead({ status, reason, fields, lengthAt }: SentHead, length: number | undefined): void {
    this.head = undefined
    if (lengthAt !== -1) {
      if (length === undefined) fields.splice(lengthAt, 2)
      else fields[lengthAt + 1] = String(length)
    }
    this.response.writeHead(status, reason, fields)
  }
}

/** The end-to-end fields (RFC 9110 7.6.1), and whether the body is JSON that is not encoded. */
function readFields(
  raw: readonly string[],
  added: readonly string[],
): { readonly fields: string[]; readonly lengthAt: number; readonly isPlainJson: boolean } {
  const fields: string[] = []
  let named: string[] = []
  let lengthAt = -1
  let isJson = false
  let isEncoded = false
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    const value = raw[at + 1] ?? ''
    const lower = name.toLowerCase()
    if (lower === 'connection' && !KEPT_CONNECTION.test(value))
      named = [...named, ...connectionOptions(value)]
    if (hopByHopHeaders.has(lower)) continue
    if (added.length > 0 && holdsCredential(`${name}: ${value}`, added)) continue
    if (lower === 'content-type') isJson = JSON_TYPE.test(value)
    else if (lower === 'content-encoding') isEncoded = value !== 'identity'
    else if (lower === 'content-length') lengthAt = fields.length
    fields.push(name, value)
  }
  const isPlainJson = isJson && !isEncoded
  if (named.length === 0) return { fields, lengthAt, isPlainJson }
  // They end at this hop too.
  const kept = fields.filter((_part, at) => !named.includes((fields[at - (at % 2)] ?? '').toLowerCase()))
  return {
    fields: kept,
    lengthAt: kept.findIndex((part, at) => at % 2 === 0 && /^content-length$/i.test(part)),
    isPlainJson,
  }
}

/** Node checks a status line when it is written, here that is later. */
function checkStatusLine(status: number, reason: string): void {
  validateHeaderValue('reason', reason)
  if (status < 100 || status > 999)
    throw new AdapterError('ADP_UPSTREAM_PROTOCOL', 'The service sent no valid status.')
}
