import { isUtf8 } from 'node:buffer'

import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import {
  type DecodedReply,
  inspectBatchInSlices,
  noBatchLimits,
  openReplyDecoding,
  readCharset,
} from '../../v2/index.ts'
import { type Exchange, headerOf } from './exchange.ts'
import { pseudonymiseJson } from './pseudonymise-json.ts'
import { pseudonymiseLines } from './pseudonymise-lines.ts'
import type { Pseudonyms } from './pseudonyms.ts'
import { splitMessage } from './split-message.ts'
import { knownWords } from './vocabulary.ts'

/** Larger counts in Content-ID than twice the parts of a batch are numbers of something else. */
const COUNT_SLACK = 10

/**
 * An exchange with every id, name and text replaced, once its credentials are masked. Undefined where the result would not be the same
 * case, or would take too long at once: a batch that cannot be decoded, or is decoded otherwise afterwards; values above 4 KiB; a
 * charset whose letters are not those of UTF-8 or ISO-8859-1.
 */
export async function pseudonymiseExchange(
  pseudonyms: Pseudonyms,
  exchange: Exchange,
  slices: Slices,
): Promise<Exchange | undefined> {
  const { kind, target, contentType, body, reply } = exchange
  if (kind !== 'batch' && hasOtherLetters(contentType ?? '')) return undefined
  const words = (text: string): string => pseudonyms.words(text, knownWords)
  const before = kind === 'batch' ? await shapeOf(body, contentType, slices) : undefined
  if (kind === 'batch' && before === undefined) return undefined
  const lines = new Map<string, string>()
  const maxCount = 2 * (before?.parts ?? 0) + COUNT_SLACK
  const map = (bytes: Buffer, type: string | undefined): Promise<Buffer | undefined> =>
    pseudonymiseBody(
      bytes,
      type,
      async (text, isFraming) => {
        if (!isFraming) return pseudonymiseJson(pseudonyms, text, slices)
        if (text.length > MAX_FRAMING || hasOtherLetters(text)) return undefined
        return pseudonymiseLines(pseudonyms, text, maxCount, lines)
      },
      slices,
    )
  const ownBody = await map(body, contentType)
  const replyBody = await map(reply.body, headerOf(reply.headers, 'content-type'))
  if (ownBody === undefined || replyBody === undefined) return undefined
  const headers = reply.headers.map(([name, value]) => [name, words(value)] as const)
  const mapped: Exchange = {
    ...exchange,
    target: pseudonymiseTarget(pseudonyms, target),
    contentType: contentType === undefined ? undefined : words(contentType),
    accept: exchange.accept === undefined ? undefined : words(exchange.accept),
    prefer: exchange.prefer === undefined ? undefined : words(exchange.prefer),
    body: ownBody,
    reply: {
      ...reply,
      reason: words(reply.reason),
      headers,
      body: replyBody,
    },
    receivedMs: shiftOf(pseudonyms, exchange.receivedMs),
  }
  const after = before && (await shapeOf(mapped.body, mapped.contentType, slices))
  if (after?.text !== before?.text) return undefined
  return (await replyShape(exchange, slices)) === (await replyShape(mapped, slices)) ? mapped : undefined
}

/** The cost of a line of framing in bytes of a batch that is decoded, for each of its bytes. */
const LINE_WORK = 512
/** More lines between two bodies are not those of a batch, and would be replaced in one turn. */
const MAX_FRAMING = 16_384

async function pseudonymiseBody(
  body: Buffer,
  contentType: string | undefined,
  map: (text: string, isFraming: boolean) => Promise<string | undefined>,
  slices: Slices,
): Promise<Buffer | undefined> {
  const mapped: Buffer[] = []
  for (const { isFraming, bytes } of splitMessage(body, contentType)) {
    const encoding = isUtf8(bytes) ? 'utf8' : 'latin1'
    const text = await map(bytes.toString(encoding), isFraming)
    if (text === undefined) return undefined
    mapped.push(Buffer.from(text, encoding))
    if (isFraming && slices.spend(bytes.length * LINE_WORK)) await slices.next()
  }
  return Buffer.concat(mapped)
}

/** Texts in a query are literals between apostrophes; all else is names, signs and numbers of OData. */
function pseudonymiseTarget(pseudonyms: Pseudonyms, target: string): string {
  const at = target.indexOf('?')
  const path = pseudonyms.words(at === -1 ? target : target.slice(0, at), knownWords)
  if (at === -1) return path
  const literal = /('|%27)((?:(?!\1)[^&]|\1\1)*)\1|[^'&%]+|[^]/gi
  const query = target.slice(at + 1).replaceAll(literal, (token, quote?: string, text?: string) => {
    if (quote === undefined) return pseudonyms.words(token, knownWords)
    // Text of a literal, and escaped bytes in it: nothing in it is a known word.
    return quote + pseudonyms.words(text ?? '', nothing) + token.slice(-quote.length)
  })
  return `${path}?${query}`
}

const nothing: ReadonlySet<string> = new Set()

/** True for a charset of records in which some letters would be none, read as ISO-8859-1, and so would stay. */
function hasOtherLetters(framing: string): boolean {
  return (framing.match(/charset[ \t]*=[^\r\n]*/gi) ?? []).some((text) => {
    const charset = readCharset(`text/plain; ${text}`)
    return charset !== undefined && charset !== 'latin1' && charset !== 'other'
  })
}

const shiftOf = (pseudonyms: Pseudonyms, ms: number): number =>
  Date.parse(pseudonyms.text(new Date(ms).toISOString().slice(0, 10))) + (ms % 86_400_000)

/** What a decoder makes of a batch, without its values; undefined: its envelope cannot be decoded. */
async function shapeOf(
  body: Buffer,
  contentType: string | undefined,
  slices: Slices,
): Promise<{ readonly parts: number; readonly text: string } | undefined> {
  const { batch, findings } = await inspectBatchInSlices(body, contentType, { limits: noBatchLimits }, slices)
  if (batch === undefined) return undefined
  const { idsAgree, changesets, parts } = batch
  const text = JSON.stringify([
    idsAgree,
    changesets.length,
    parts.map(({ changeset, start, end, faults }) => [
      changeset,
      start,
      end,
      faults?.map(({ code }) => code),
    ]),
    findings.map(({ severity, code, part, offset }) => [severity, code, part, offset]),
  ])
  return { parts: parts.length, text }
}

/** Bytes of a reply that are decoded at once. */
const REPLY_STEP = 262_144

async function replyShape({ kind, reply }: Exchange, slices: Slices): Promise<string> {
  const { status, headers, body } = reply
  const type = headerOf(headers, 'content-type')
  if (kind !== 'batch' || !/^\s*multipart\//i.test(type ?? '')) return `${status} ${body.length}`
  try {
    const decoding = openReplyDecoding(type)
    const parts: (readonly [status: number, length: number])[] = []
    const add = (whole: readonly DecodedReply[]): void => {
      for (const part of whole) parts.push([part.status, part.body.length])
    }
    for (let at = 0; at < body.length; at += REPLY_STEP) {
      add(decoding.push(body.subarray(at, at + REPLY_STEP)))
      await slices.next()
    }
    add(decoding.end())
    return JSON.stringify(parts)
  } catch (cause) {
    if (cause instanceof AdapterError) return cause.code
    throw cause
  }
}
