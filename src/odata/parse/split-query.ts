import { QueryError } from '../query-error.ts'
import { nameOption } from './option-names.ts'

/** One `name=value` of a query string, both percent-decoded. */
export interface RawOption {
  readonly name: string
  /** `undefined` where there is no `=`. */
  readonly value: string | undefined
  /** Index of the option's first character in the raw query string, from 0. */
  readonly position: number
  /** Indices in `value` of the semicolons that were percent-encoded; absent without one. */
  readonly encodedSemicolons?: ReadonlySet<number>
}

export interface SplitQueryOptions {
  /** The meaning of `+`: a blank, as in form encoding and ASP.NET (the default), or itself (RFC 3986). */
  readonly plus?: 'blank' | 'literal'
}

type Plus = NonNullable<SplitQueryOptions['plus']>

const escapes = /(?:%[0-9a-f]{2})+/gi

function decode(raw: string, plus: Plus, fail: (message: string, at: number) => never): string {
  const hash = raw.indexOf('#')
  // RFC 3986 3.5: it would end the query.
  if (hash >= 0) fail('"#" is written %23 in a query', hash)
  const text = plus === 'blank' ? raw.replaceAll('+', ' ') : raw
  if (!text.includes('%')) return text
  return isEncoding(text)
    ? decodeURIComponent(text)
    : fail('The percent-encoding is not valid UTF-8', strayEscape(text))
}

function isEncoding(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Index of the first escape that cannot be decoded. */
function strayEscape(text: string): number {
  const incomplete = text.search(/%(?![0-9a-f]{2})/i)
  for (const { 0: run, index } of text.matchAll(escapes))
    if ((incomplete < 0 || index < incomplete) && !isEncoding(run)) return index
  return incomplete
}

/** The indices in the decoded text of semicolons that were encoded as `%3B`. */
function encodedSemicolons(raw: string, plus: Plus): ReadonlySet<number> | undefined {
  const [first = '', ...others] = raw.split(/%3b/i)
  if (others.length === 0) return undefined
  const positions = new Set<number>()
  let length = decode(first, plus, failAnywhere).length
  for (const piece of others) {
    positions.add(length)
    length += 1 + decode(piece, plus, failAnywhere).length
  }
  return positions
}

/** For text that was decoded before: an escape of its own ends every multi-byte character. */
const failAnywhere = (message: string, at: number): never => {
  throw new QueryError(message, at)
}

/**
 * Splits a raw query string, without its `?`, into options in their order. Options are separated before they are
 * decoded, so an encoded `&` or `=` is part of a value, and an encoded `;` can be distinguished from one that separates nested options;
 * every parser of this layer takes the decoded text.
 *
 * @throws QueryError for broken percent-encoding and for `#`, with the position in the value as far as it can be decoded, or in the
 * raw string for a fault in a name
 */
export function splitQuery(query: string, { plus = 'blank' }: SplitQueryOptions = {}): readonly RawOption[] {
  const options: RawOption[] = []
  let position = 0
  for (const part of query.split('&')) {
    if (part !== '') options.push(readOption(part, position, plus))
    position += part.length + 1
  }
  return options
}

function readOption(part: string, position: number, plus: Plus): RawOption {
  const equals = part.indexOf('=')
  const name = decode(equals < 0 ? part : part.slice(0, equals), plus, (message, at) => {
    throw new QueryError(message, position + at)
  })
  if (equals < 0) return { name, value: undefined, position }
  const raw = part.slice(equals + 1)
  const value = decode(raw, plus, (message, at) => {
    throw new QueryError(message, decode(raw.slice(0, at), plus, failAnywhere).length, nameOption(name))
  })
  const semicolons = encodedSemicolons(raw, plus)
  return { name, value, position, ...(semicolons === undefined ? {} : { encodedSemicolons: semicolons }) }
}
