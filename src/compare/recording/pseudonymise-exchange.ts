import { isUtf8 } from 'node:buffer'

import { AdapterError } from '../../errors.ts'
import { decodeBatchReply, inspectBatch, noBatchLimits } from '../../v2/index.ts'
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
 * case: a batch that cannot be decoded, or one that is decoded otherwise afterwards.
 * `pause` lets others run between its parts.
 */
export async function pseudonymiseExchange(
  pseudonyms: Pseudonyms,
  exchange: Exchange,
  pause: () => Promise<void> = () => Promise.resolve(),
): Promise<Exchange | undefined> {
  const { kind, target, contentType, body, reply } = exchange
  const words = (text: string): string => pseudonyms.words(text, knownWords)
  const before = kind === 'batch' ? shapeOf(body, contentType) : undefined
  if (kind === 'batch' && before === undefined) return undefined
  const lines = new Map<string, string>()
  const maxCount = 2 * (before?.parts ?? 0) + COUNT_SLACK
  const map = (bytes: Buffer, type: string | undefined): Promise<Buffer> =>
    pseudonymiseBody(
      bytes,
      type,
      (text, isFraming) =>
        isFraming ? pseudonymiseLines(pseudonyms, text, maxCount, lines) : pseudonymiseJson(pseudonyms, text),
      pause,
    )
  const headers = reply.headers.map(([name, value]) => [name, words(value)] as const)
  const mapped: Exchange = {
    ...exchange,
    target: pseudonymiseTarget(pseudonyms, target),
    contentType: contentType === undefined ? undefined : words(contentType),
    accept: exchange.accept === undefined ? undefined : words(exchange.accept),
    prefer: exchange.prefer === undefined ? undefined : words(exchange.prefer),
    body: await map(body, contentType),
    reply: {
      ...reply,
      reason: words(reply.reason),
      headers,
      body: await map(reply.body, headerOf(reply.headers, 'content-type')),
    },
    receivedMs: shiftOf(pseudonyms, exchange.receivedMs),
  }
  if (before !== undefined && shapeOf(mapped.body, mapped.contentType)?.text !== before.text) return undefined
  return replyShape(exchange) === replyShape(mapped) ? mapped : undefined
}

/** Bytes after which others run. */
const PAUSE_AFTER = 2_048

async function pseudonymiseBody(
  body: Buffer,
  contentType: string | undefined,
  map: (text: string, isFraming: boolean) => string,
  pause: () => Promise<void>,
): Promise<Buffer> {
  const mapped: Buffer[] = []
  let work = 0
  for (const { isFraming, bytes } of splitMessage(body, contentType)) {
    const encoding = isUtf8(bytes) ? 'utf8' : 'latin1'
    mapped.push(Buffer.from(map(bytes.toString(encoding), isFraming), encoding))
    work += bytes.length
    if (work < PAUSE_AFTER) continue
    work = 0
    await pause()
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

const shiftOf = (pseudonyms: Pseudonyms, ms: number): number =>
  Date.parse(pseudonyms.text(new Date(ms).toISOString().slice(0, 10))) + (ms % 86_400_000)

/** What a decoder makes of a batch, without its values; undefined: its envelope cannot be decoded. */
function shapeOf(
  body: Buffer,
  contentType: string | undefined,
): { readonly parts: number; readonly text: string } | undefined {
  const { batch, findings } = inspectBatch(body, contentType, { limits: noBatchLimits })
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

function replyShape({ kind, reply }: Exchange): string {
  const { status, headers, body } = reply
  const type = headerOf(headers, 'content-type')
  if (kind !== 'batch' || !/^\s*multipart\//i.test(type ?? '')) return `${status} ${body.length}`
  try {
    return JSON.stringify(decodeBatchReply(body, type).map((part) => [part.status, part.body.length]))
  } catch (cause) {
    if (cause instanceof AdapterError) return cause.code
    throw cause
  }
}
