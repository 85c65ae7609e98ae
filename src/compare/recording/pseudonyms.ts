import { isUtf8 } from 'node:buffer'
import { createHmac } from 'node:crypto'

import { v2ErrorRules } from '../../translate/index.ts'
import { inspectBatch, noBatchLimits } from '../../v2/index.ts'
import { classOf } from '../diff/classes.ts'
import { isServiceMember } from '../diff/compare-values.ts'
import { fieldOf } from '../wire-exchange.ts'
import type { RecordedExchange, RecordedMessage } from './exchange.ts'
import { splitMessage } from './split-message.ts'

const GUID =
  '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{32}(?![0-9a-z])'
const DAY = '(?<!\\d)(?:19|20)\\d\\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])(?!\\d)'
/** A calendar date, alone or with a time, as text or in a URL; times of day and offsets stay. */
const DATE = `${DAY}(?:T\\d\\d(?::|%3A)\\d\\d(?:(?::|%3A)\\d\\d(?:\\.\\d{1,12})?)?(?:Z|(?:[+-]|%2B|%2D)\\d\\d(?::|%3A)?\\d\\d)?)?`
const ids = new RegExp(`${GUID}|${DATE}`, 'gi')
/** A letter or digit as an escaped byte of a URL, or a byte of one beyond ASCII. */
const ESCAPED_LETTER = '%(?:25)*(?:3\\d|[46][1-9a-f]|[57][\\da]|[89a-f][\\da-f])'
/** Hosts of addresses, ids, words, and other escaped bytes of a URL. */
const idsAndWords = new RegExp(
  `(?<=//)[^/?#\\s"'<>]+|${GUID}|${DATE}|(?:${ESCAPED_LETTER}|[\\p{L}\\p{Nd}])+|%(?:25)*[0-9a-f]{2}`,
  'giu',
)
const escapedSign = new RegExp(`^(?!${ESCAPED_LETTER})%`, 'i')
const WEEK_MS = 604_800_000
/** Dates move back by 1 to 520 weeks: days of the week stay. */
const WEEKS = 520

const wireWords = new Set(
  `http https get head post put patch delete options version content type id length transfer encoding disposition accept charset 7bit 8bit prefer
  return representation minimal respond async binary application json xml text plain html multipart mixed form data boundary batch changeset response
  request batchresponse changesetresponse odata metadata full none streaming true false null ieee754compatible utf iso 8859 windows 1252 us ascii latin1 q max
  maxversion msgtype retry after v1 v2 v3 attendance attendancerecords attendancerecord attendanceservice learnerregistations learnerregistrations
  host authorization cookie forwarded x for proto port etag models entity context count nextlink top skip filter expand select orderby search format skiptoken asc desc and or not eq ne gt ge lt le in any
  all guid datetime datetimeoffset contains startswith endswith ok created bad unauthorized forbidden found internal server error`
    .trim()
    .split(/\s+/),
)
/** Members of the service's error forms. */
const errorNames = new Set(
  'Message ErrorCode ResourceIdentifier SequenceID error code message target details innererror value data statusCode d'.split(
    ' ',
  ),
)
const isKnownName = (name: string): boolean =>
  isServiceMember(name) || errorNames.has(name) || /^(?:\w+)?@odata\.\w+$/.test(name)

export type Pseudonyms = ReturnType<typeof createPseudonyms>

/** Creates what replaces values under a key of 32 bytes: equal ones by equal ones, also with the same key at another time. */
export function createPseudonyms(key: Uint8Array) {
  const hash = (text: string): string => createHmac('sha256', key).update(text).digest('hex')
  const shiftMs = (1 + (Number.parseInt(hash('weeks').slice(0, 8), 16) % WEEKS)) * WEEK_MS
  /** Version and variant stay, and whether letters are lower case. */
  const guid = (value: string): string => {
    const digits = value.replaceAll('-', '').toLowerCase()
    if (/^0+$/.test(digits)) return value
    const own = hash(`guid ${digits}`)
    const mapped =
      own.slice(0, 12) + digits.charAt(12) + own.slice(13, 16) + digits.charAt(16) + own.slice(17, 32)
    const shown = value.includes('-') ? mapped.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') : mapped
    return value === value.toLowerCase() ? shown : shown.toUpperCase()
  }
  const date = (value: string): string => {
    const ms = Date.parse(`${value.slice(0, 10)}T00:00:00Z`)
    return new Date(ms - shiftMs).toISOString().slice(0, 10) + value.slice(10)
  }
  const id = (value: string): string => (value.charAt(4) === '-' ? date(value) : guid(value))
  /** As many digits; an int32 stays one. */
  const digitsOf = (text: string, isInt32 = true): string => {
    if (Number(text) === 0) return text
    const digits = BigInt(`0x${hash(`number ${text}`)}`).toString()
    return text.length === 1 ? digits.slice(0, 1) : (isInt32 ? '1' : '9') + digits.slice(1, text.length)
  }
  const word = (text: string): string => {
    if (escapedSign.test(text) || wireWords.has(text.toLowerCase()) || isKnownName(text)) return text
    // Versions, status codes, and what counts the parts of a batch.
    if (/^\d+$/.test(text)) return text.length <= 3 ? text : digitsOf(text)
    return `w${hash(`word ${text}`).slice(0, 12)}`
  }
  return {
    /** A value: guids by keyed hashes, dates moved by whole weeks, any other text by `x` as often as the shortest text of its length class has characters. */
    text: (value: string): string =>
      /[\p{L}\p{N}]/u.test(value.replaceAll(ids, '')) ? markOf(value) : value.replaceAll(ids, id),
    /** Framing, addresses and queries word by word: words of HTTP, MIME and OData and names of the service stay, others become keyed hashes. */
    words: (value: string): string =>
      value.replaceAll(idsAndWords, (found: string, at: number, all: string) => {
        if (all.slice(at - 2, at) === '//') return 'host.invalid'
        return /^[0-9a-f]{4,8}-|^[0-9a-f]{32}$/i.test(found) ? id(found) : word(found)
      }),
    /** The lexeme of a number of JSON: the same form with as many other digits. */
    number: (lexeme: string): string => {
      const [, sign = '', whole = '', rest = ''] = /^(-?)(\d+)(.*)$/.exec(lexeme) ?? []
      return sign + digitsOf(whole, Number(lexeme) === (Number(lexeme) | 0)) + rest.replaceAll(/\d/g, '0')
    },
    /** A time, moved as dates are. */
    time: (ms: number): number => ms - shiftMs,
  }
}

/** Of `length:10-20`: ten `x`. */
const markOf = (text: string): string => 'x'.repeat(Number(/\d+/.exec(classOf(text, 'text'))?.[0] ?? 0))

/**
 * An exchange with every id, name and text replaced, once its credentials are masked. Undefined where the result would not be the same
 * case: a batch that cannot be decoded, or is decoded otherwise afterwards.
 */
export function pseudonymise(
  pseudonyms: Pseudonyms,
  exchange: RecordedExchange,
): RecordedExchange | undefined {
  const { kind, target, request, reply } = exchange
  const { words } = pseudonyms
  const before = kind === 'batch' ? shapeOf(request) : undefined
  if (kind === 'batch' && before === undefined) return undefined
  const fieldsOf = ({ fields }: RecordedMessage): readonly string[] =>
    fields.map((text, at) => (at % 2 === 0 ? text : words(text)))
  const mapped: RecordedExchange = {
    ...exchange,
    target: mapTarget(pseudonyms, target),
    request: { fields: fieldsOf(request), body: mapBody(pseudonyms, request) },
    reply: {
      ...reply,
      reason: words(reply.reason),
      fields: fieldsOf(reply),
      body: mapBody(pseudonyms, reply),
    },
    receivedMs: pseudonyms.time(exchange.receivedMs),
  }
  const after = before && shapeOf(mapped.request)
  return before === after ? mapped : undefined
}

/** What a decoder makes of a batch, without its values and offsets; undefined: its envelope cannot be decoded. */
function shapeOf(message: RecordedMessage): string | undefined {
  const contentType = fieldOf(message, 'content-type')
  const { batch, findings } = inspectBatch(message.body, contentType, { limits: noBatchLimits })
  if (batch === undefined) return undefined
  return JSON.stringify([
    ...[batch.idsAgree, batch.changesets.length],
    batch.parts.map(({ changeset, faults }) => [changeset, faults?.map(({ code }) => code)]),
    findings.map(({ severity, code, part }) => [severity, code, part]),
  ])
}

/** Texts in a query are literals between apostrophes; all else is names, signs and numbers of OData. */
function mapTarget({ text, words }: Pseudonyms, target: string): string {
  const literal = /('|%27)((?:(?!\1)[^&]|\1\1)*)\1|[^'&%]+|[^]/gi
  const [path = '', query] = target.split(/\?(.*)/s)
  if (query === undefined) return words(path)
  const mapped = query.replaceAll(literal, (token, quote?: string, inner?: string) =>
    quote === undefined ? words(token) : quote + text(inner ?? '') + token.slice(-quote.length),
  )
  return `${words(path)}?${mapped}`
}

/** Maps framing line by line and contents as JSON; the Content-Length of a part is that of its new content. */
function mapBody(pseudonyms: Pseudonyms, message: RecordedMessage): Buffer {
  const mapped: Buffer[] = []
  for (const { isFraming, bytes } of splitMessage(message)) {
    const encoding = isUtf8(bytes) ? 'utf8' : 'latin1'
    const text = bytes.toString(encoding)
    if (isFraming) {
      mapped.push(Buffer.from(mapFraming(pseudonyms, text), encoding))
      continue
    }
    const content = Buffer.from(mapJson(pseudonyms, text), encoding)
    const head = mapped.pop()?.toString('latin1') ?? ''
    const longer = content.length - bytes.length
    const fitted = head.replace(
      /(content-length[ \t]*:[ \t]*)(\d+)(?![^]*content-length)/i,
      (_all, name: string, length: string) => `${name}${Math.max(0, Number(length) + longer)}`,
    )
    mapped.push(Buffer.from(fitted, 'latin1'), content)
  }
  return Buffer.concat(mapped)
}

function mapFraming({ words }: Pseudonyms, text: string): string {
  return text
    .split(/(\r\n|\n|\r)/)
    .map((line) => (/^content-length[ \t]*:[ \t]*\d+[ \t]*$/i.test(line) ? line : words(line)))
    .join('')
}

/** A string in either quotes, or a run of anything that is neither a quote, a blank nor a sign of JSON. */
const TOKENS = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|[^"'\s[\]{}:,]+/g
const INTEGER = /^\s*[+-]?\d+\s*$/
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/**
 * Replaces each value in the text of a JSON document, also of one that is not quite JSON, and names of members that the service does not
 * declare. Blanks, signs, and the order and kind of all values stay.
 */
function mapJson(pseudonyms: Pseudonyms, json: string): string {
  const pieces: string[] = []
  let end = 0
  let member = ''
  for (const { 0: token, index } of json.matchAll(TOKENS)) {
    pieces.push(json.slice(end, index))
    end = index + token.length
    const quote = /^["']/.test(token) && token.length > 1 ? token.charAt(0) : ''
    if (quote === '') pieces.push(mapBare(pseudonyms, member, token))
    else if (/^\s{0,256}:/.test(json.slice(end, end + 257))) {
      member = plainOf(token)
      pieces.push(
        isKnownName(member)
          ? token
          : quote +
              pseudonyms
                .words(`w ${member}`)
                .slice(2)
                .replaceAll(/[^\w-]/g, '') +
              quote,
      )
    } else {
      const plain = plainOf(token)
      const mapped = mapValue(pseudonyms, member, plain)
      pieces.push(mapped === plain ? token : quote + JSON.stringify(mapped).slice(1, -1) + quote)
    }
  }
  pieces.push(json.slice(end))
  return pieces.join('')
}

/** The text that a token stands for; as it is written where its escapes are broken. */
function plainOf(token: string): string {
  const inner = token.slice(1, -1)
  const own = token.startsWith('"')
    ? inner
    : inner.replaceAll(/\\'|"/g, (quote) => (quote === '"' ? '\\"' : "'"))
  try {
    return String(JSON.parse(`"${own}"`))
  } catch {
    return inner
  }
}

function mapBare(pseudonyms: Pseudonyms, member: string, token: string): string {
  if (token === 'true' || token === 'false' || token === 'null') return token
  if (!NUMBER.test(token)) return pseudonyms.text(token)
  return isMinutes(member, token) ? token : pseudonyms.number(token)
}

/** Names of types and addresses of the service, in which words that it declares stay. */
const structured = /^@|@odata\.|^(?:Type|target)$/
const ownMessages: ReadonlySet<string> = new Set(v2ErrorRules.map(({ to }) => to.message))

function mapValue(pseudonyms: Pseudonyms, member: string, text: string): string {
  const isKept =
    (/^(?:ErrorCode|code)$/.test(member) && /^[A-Z]{2,10}(?:_[A-Z0-9]{1,20})+$/.test(text)) ||
    (member === 'Message' && ownMessages.has(text)) ||
    // V2 reads flags and minutes that are written as text.
    (/^(?:Present|Absent)$/.test(member) && /^\s*(?:true|false)\s*$/i.test(text)) ||
    (INTEGER.test(text) && isMinutes(member, text))
  if (isKept) return text
  if (member === 'MinutesLate' && INTEGER.test(text)) return text.replace(/-?\d+/, pseudonyms.number)
  return structured.test(member) ? pseudonyms.words(text) : pseudonyms.text(text)
}

/** More minutes than a day has are no lateness, and may be a number of something else. */
const isMinutes = (member: string, text: string): boolean =>
  member === 'MinutesLate' && Math.abs(Number(text)) <= 1_440
