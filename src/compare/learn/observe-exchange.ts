import { AdapterError, errorRules } from '../../errors.ts'
import { type BatchLimits, decodeBatch, decodeBatchReply, isGenericClient } from '../../v2/index.ts'
import { isServiceMember } from '../diff/compare-values.ts'
import { isMembers } from '../diff/values.ts'
import { readBody } from '../live/marks.ts'
import { encodingOf, fieldOf, headersOf, type WireExchange } from '../wire-exchange.ts'

export type LearnedExchange = Pick<WireExchange, 'kind' | 'request' | 'reply'>

/** Maximum size in bytes of a reply that is observed. Larger replies rarely show more than smaller replies. */
const MAX_REPLY_BYTES = 1_048_576
const MAX_RECORDS = 50
const MAX_DEPTH = 8

/** The members whose `Type` is observed, each with the key in section `v3` of the configuration that sets the type. */
const typeKeys: Readonly<Record<string, string>> = {
  Event: 'eventType',
  AttendableEvent: 'eventType',
  AttendanceCode: 'codeType',
  SchoolAttendanceCode: 'codeType',
}

/**
 * Returns what a reply of V2 shows about the interface of a partner, as names such as `layout/nested/plain`, `part/msgtype`,
 * `envelope/data`, `mismatch/empty`, `error/400/ATT_VAL_2/…` and `type/eventType/…`. No name contains an id or a value of a record. Never
 * throws for a malformed message.
 */
export function observeExchange(exchange: LearnedExchange, limits: BatchLimits): readonly string[] {
  const { kind, reply } = exchange
  const seen = new Set<string>([`exchange/${kind === 'batch' || kind === 'record' ? kind : 'read'}`])
  // Most replies are not compressed, so it is not worth decoding the few compressed replies.
  if (reply.body === undefined || encodingOf(reply) !== undefined || reply.body.length > MAX_REPLY_BYTES)
    return [...seen]
  try {
    if (kind === 'batch' && reply.status === 200) observeBatch(exchange, reply.body, limits, seen)
    else observeBody(reply.status, reply.body.toString('utf8'), seen)
  } catch (cause) {
    if (!(cause instanceof AdapterError) || errorRules[cause.code].class !== 'request') throw cause
    seen.add('reply/unreadable')
  }
  return [...seen]
}

function observeBatch(
  { request, reply }: LearnedExchange,
  body: Buffer,
  limits: BatchLimits,
  seen: Set<string>,
): void {
  const parts = decodeBatchReply(body, fieldOf(reply, 'content-type')).parts
  if (!idsAgree(request, limits)) seen.add(parts.length === 0 ? 'mismatch/empty' : 'mismatch/parts')
  // An empty reply looks the same in both layouts, so it does not show the layout.
  if (parts.length === 0) return
  // Headers can be searched for in the whole body, because a line of a JSON body never looks like a header: JSON strings contain no line
  // ends.
  const heads = body.toString('latin1')
  const layout = /^content-type:[ \t]*multipart\/mixed/im.test(heads) ? 'nested' : 'flat'
  seen.add(`layout/${layout}/${isGenericClient(headersOf(request)) ? 'generic' : 'plain'}`)
  for (const [, parameter] of heads.matchAll(/^content-type:[ \t]*application\/http([^\r\n]*)/gim)) {
    seen.add(/;\s*msgtype\s*=\s*"?response/i.test(parameter ?? '') ? 'part/msgtype' : 'part/http')
  }
  for (const part of parts.slice(0, MAX_RECORDS)) observeBody(part.status, part.body, seen)
}

function idsAgree(request: LearnedExchange['request'], limits: BatchLimits): boolean {
  const { body } = request
  if (body === undefined) return true
  try {
    return decodeBatch(body, fieldOf(request, 'content-type'), { limits }).idsAgree
  } catch (cause) {
    if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return true
    throw cause
  }
}

function observeBody(status: number, text: string, seen: Set<string>): void {
  const value = readBody(text)
  if (value === undefined) return
  if (status >= 400) {
    observeErrors(status, value, seen)
    return
  }
  if (status >= 300) return
  if (isMembers(value)) seen.add(Object.keys(value).join() === 'd' ? 'envelope/data' : 'envelope/plain')
  observeTypes(value, seen, 0)
}

/** Observes the error array of V2 (service.md 7). */
function observeErrors(status: number, value: unknown, seen: Set<string>): void {
  if (!Array.isArray(value)) return
  for (const entry of value.slice(0, MAX_RECORDS)) {
    if (!isMembers(entry)) continue
    const { ErrorCode, Message } = entry
    if (typeof ErrorCode !== 'string' || typeof Message !== 'string') continue
    const code = safeCode(ErrorCode)
    // An error message can only be configured for its code, so a message without a valid code is withheld too.
    const message = code === WITHHELD ? WITHHELD : safeMessage(Message)
    seen.add(`error/${Math.min(599, status)}/${code}/${message}`)
  }
}

function observeTypes(value: unknown, seen: Set<string>, depth: number): void {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const element of value.slice(0, MAX_RECORDS)) observeTypes(element, seen, depth + 1)
    return
  }
  for (const [name, member] of Object.entries(value)) {
    const key = Object.hasOwn(typeKeys, name) ? typeKeys[name] : undefined
    if (key !== undefined && isMembers(member)) {
      const { Type } = member
      if (typeof Type === 'string' && isTypeName(Type)) seen.add(`type/${key}/${Type}`)
    }
    observeTypes(member, seen, depth + 1)
  }
}

const MAX_MESSAGE = 200
/** Replaces a text that may contain a value of a record. */
export const WITHHELD = '(withheld)'

/** The words of the service's own error texts. No word of the set identifies a learner. */
const serviceWords: ReadonlySet<string> = new Set(
  `ok created accepted no bad unauthorized forbidden not found method allowed conflict gone too many requests internal server error unavailable
  gateway timeout service the does do exist is a an of be by may must was with to this record code event lookup learner identifier attendee session
  sequenceid invalid unknown missing required field value present absent and or in any all attendance id type request response`
    .trim()
    .split(/\s+/),
)
const errorMembers: ReadonlySet<string> = new Set(['ErrorCode', 'ResourceIdentifier', 'SequenceID'])

const plainText = /^[A-Za-z][A-Za-z ,.'-]*$/
/** The words of the `Type` strings in service.md and the documents of the vendor (service-facts 5). */
const typeWords: ReadonlySet<string> = new Set(
  'Learner Identifier Attendance Session Statutory Attendable Event Lookup Code School Pupil Student'.split(
    ' ',
  ),
)

/**
 * Returns an error message if it consists only of the vocabulary of the service, without digits or quoted values, and `WITHHELD` otherwise.
 * Within a sentence, only names of members may be capitalised, since any other capitalised word may be the name of a person.
 */
function safeMessage(message: string): string {
  if (message.length > MAX_MESSAGE || !plainText.test(message)) return WITHHELD
  const isPlain = message.split(/[.]\s*/).every((sentence) =>
    sentence
      .split(/[ ,'-]+/)
      .filter((word) => word !== '')
      .every((word, at) => isServiceWord(word, at === 0)),
  )
  return isPlain ? message : WITHHELD
}

function isServiceWord(word: string, isFirst: boolean): boolean {
  if (isServiceMember(word) || errorMembers.has(word)) return true
  const isLower = word === word.toLowerCase() || (isFirst && word.slice(1) === word.slice(1).toLowerCase())
  return isLower && serviceWords.has(word.toLowerCase())
}

function safeCode(code: string): string {
  return /^[A-Z]{2,12}(?:_[A-Z]{1,12}){0,3}(?:_\d{1,3})?$/.test(code) ? code : WITHHELD
}

function isTypeName(text: string): boolean {
  if (text.length > 100 || !/^[A-Z][A-Za-z]*(?:\.[A-Z][A-Za-z]*)+$/.test(text)) return false
  return (text.match(/[A-Z][a-z]*/g) ?? []).every((word) => typeWords.has(word))
}
