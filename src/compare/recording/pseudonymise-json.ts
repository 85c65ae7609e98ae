import type { Slices } from '../../http/slices.ts'
import type { Pseudonyms } from './pseudonyms.ts'
import { knownMembers, knownWords } from './vocabulary.ts'

/** A string in either quotes, or a run of anything that is neither a quote, a blank nor a sign of JSON. */
const TOKENS = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|[^"'\s[\]{}:,]+/g
/** One character as a string of JSON writes it. */
const UNITS = /\\u[0-9a-f]{4}|\\[^]|[^]/giu
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/
/** Names of types and addresses of the service, in which words that it declares stay. */
const structured = /^@|@odata\.|^(?:Type|target)$/
const texts: ReadonlySet<string> = new Set(['Message', 'message'])
const codes: ReadonlySet<string> = new Set(['ErrorCode', 'code'])
const FLAG = /^\s*(?:true|false)\s*$/i
const INTEGER = /^\s*[+-]?\d+\s*$/
const CODE = /^[A-Z]{2,10}(?:_[A-Z0-9]{1,20})+$/
/** More minutes than a day has are no lateness, and may be a number of something else. */
const MAX_MINUTES = 1_440

/** A longer value would be replaced for too long in one turn; no member of the service is that long. */
const MAX_TOKEN = 4_096
/** The cost of a character in bytes of a batch that is decoded. */
const PSEUDONYM_WORK = 512

/**
 * Replaces each value in the text of a JSON document, also of one that is not quite JSON, and names of members that the service does not
 * declare. The form stays character by character: blanks, quotes, escapes, the order and kind of all values. Undefined where a value is
 * too long.
 */
export async function pseudonymiseJson(
  pseudonyms: Pseudonyms,
  json: string,
  slices: Slices,
): Promise<string | undefined> {
  const replace = createReplacement(pseudonyms, json)
  const pieces: string[] = []
  let end = 0
  for (const { 0: token, index } of json.matchAll(TOKENS)) {
    if (token.length > MAX_TOKEN) return undefined
    pieces.push(json.slice(end, index), replace(token, index))
    end = index + token.length
    if (slices.spend(token.length * PSEUDONYM_WORK)) await slices.next()
  }
  pieces.push(json.slice(end))
  return pieces.join('')
}

/** Replaces one token after the other; a name is remembered for the value that follows it. */
function createReplacement(pseudonyms: Pseudonyms, json: string): (token: string, at: number) => string {
  let member = ''
  return (token, at) => {
    const quote = token[0]
    if ((quote === '"' || quote === "'") && token.length > 1) {
      const inner = token.slice(1, -1)
      if (/^\s*:/.test(json.slice(at + token.length, at + token.length + MAX_BLANKS))) {
        member = plainOf(inner)
        return quote + (isKnownName(member) ? inner : mapUnits(inner, pseudonyms.text)) + quote
      }
      return quote + mapUnits(inner, (text) => mapValue(pseudonyms, member, text)) + quote
    }
    if (token === 'true' || token === 'false' || token === 'null') return token
    if (NUMBER.test(token)) return isMinutes(member, token) ? token : pseudonyms.number(token)
    return pseudonyms.text(token)
  }
}

/** Blanks between a name and its colon, beyond which a name counts as a value. */
const MAX_BLANKS = 256

const isKnownName = (name: string): boolean => knownMembers.has(name) || /^(?:\w+)?@odata\.\w+$/.test(name)

function mapValue(pseudonyms: Pseudonyms, member: string, text: string): string {
  if (codes.has(member) && CODE.test(text)) return text
  // V2 reads flags and minutes that are written as text.
  if ((member === 'Present' || member === 'Absent') && FLAG.test(text)) return text
  if (member === 'MinutesLate' && INTEGER.test(text))
    return text.replace(/-?\d+/, (own) => (isMinutes(member, own) ? own : pseudonyms.number(own)))
  if (structured.test(member) || texts.has(member)) return pseudonyms.words(text, knownWords)
  return pseudonyms.text(text)
}

const isMinutes = (member: string, lexeme: string): boolean =>
  member === 'MinutesLate' && Math.abs(Number(lexeme)) <= MAX_MINUTES

const plainOf = (inner: string): string => (inner.match(UNITS) ?? []).map(characterOf).join('')

/** Maps the characters that a string stands for; each keeps its way of being written. */
function mapUnits(inner: string, map: (text: string) => string): string {
  if (!inner.includes('\\')) return map(inner)
  const units = inner.match(UNITS) ?? []
  const mapped = map(units.map(characterOf).join(''))
  let at = 0
  return units
    .map((unit) => {
      const { length } = characterOf(unit)
      const own = mapped.slice(at, at + length)
      at += length
      if (!/^\\u/i.test(unit)) return unit.startsWith('\\') ? unit : own
      // A pair of surrogates is two units of one character each.
      return own === characterOf(unit) ? unit : `\\u${own.charCodeAt(0).toString(16).padStart(4, '0')}`
    })
    .join('')
}

function characterOf(unit: string): string {
  if (/^\\u/i.test(unit)) return String.fromCharCode(Number.parseInt(unit.slice(2), 16))
  // What an escape stands for is not a letter; as itself its letter would count as one.
  return unit.startsWith('\\') ? '\u0000' : unit
}
