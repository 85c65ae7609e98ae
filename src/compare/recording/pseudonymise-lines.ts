import type { Pseudonyms } from './pseudonyms.ts'
import { knownWords } from './vocabulary.ts'

const REQUEST = /^([A-Za-z]+[ \t]+)(\S+)([ \t]+HTTP\/\d\.\d[ \t]*)$/
const STATUS = /^(HTTP\/\d\.\d[ \t]+\d{3})(.*)$/
const LENGTH = /^content-length[ \t]*:[ \t]*\d+[ \t]*$/i
const CONTENT_ID = /^(content-id[ \t]*:[ \t]*)(.*?)([ \t]*)$/i

/**
 * Replaces ids and words in the framing of a message: delimiter lines, headers, request and status lines, and text between them. A
 * Content-ID that only counts, up to `maxCount`, stays. All lengths stay. `known` remembers lines of the same message.
 */
export function pseudonymiseLines(
  pseudonyms: Pseudonyms,
  text: string,
  maxCount: number,
  known: Map<string, string> = new Map(),
): string {
  const words = (value: string): string => pseudonyms.words(value, knownWords)
  const map = (line: string): string => {
    if (LENGTH.test(line)) return line
    const status = STATUS.exec(line)
    if (status !== null) return `${status[1] ?? ''}${words(status[2] ?? '')}`
    const request = REQUEST.exec(line)
    if (request !== null)
      return `${request[1] ?? ''}${pseudonymiseAddress(pseudonyms, request[2] ?? '')}${request[3] ?? ''}`
    const id = CONTENT_ID.exec(line)
    if (id !== null && /^[1-9]\d{0,4}$/.test(id[2] ?? '') && Number(id[2]) <= maxCount) return line
    return words(line)
  }
  return text
    .split(/(\r\n|\n|\r)/)
    .map((line, n) => {
      if (n % 2 === 1 || line === '') return line
      const mapped = known.get(line) ?? map(line)
      if (known.size < MAX_LINES) known.set(line, mapped)
      return mapped
    })
    .join('')
}

/** Lines that are remembered: those of the head of one part are those of the next. */
const MAX_LINES = 1_000

const ORIGIN = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)(.*)$/i

/** Replaces the words of an address that the service does not declare. Digits of a host stay: with others it may be none. */
function pseudonymiseAddress(pseudonyms: Pseudonyms, address: string): string {
  const [, scheme = '', authority = '', rest = address] = ORIGIN.exec(address) ?? []
  const host = authority.startsWith('[')
    ? authority
    : authority.replaceAll(/[\p{L}]+/gu, (word) => pseudonyms.words(word, knownWords))
  return scheme + host + pseudonyms.words(rest, knownWords)
}
