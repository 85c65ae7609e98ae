import { QueryError } from '../query-error.ts'

/** One `name=value` of a query string, both percent-decoded. */
export interface RawOption {
  readonly name: string
  /** `undefined` where there is no `=`. */
  readonly value: string | undefined
  /** Index of the option's first character in the raw query string, from 0. */
  readonly position: number
}

export interface SplitQueryOptions {
  /** What a `+` means: a blank, as form-encoding clients and ASP.NET have it (the default), or itself (RFC 3986). */
  readonly plus?: 'blank' | 'literal'
}

function decode(raw: string, position: number, plus: 'blank' | 'literal'): string {
  const text = plus === 'blank' ? raw.replaceAll('+', ' ') : raw
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    const stray = text.search(/%(?![0-9a-f]{2})/i)
    throw new QueryError(
      'The percent-encoding is not valid UTF-8',
      position + Math.max(stray, text.indexOf('%')),
    )
  }
}

/**
 * Splits a raw query string, without its `?`, into options in their order. Options are told apart before they are
 * decoded, so an encoded `&`, `=` or `;` is part of a value; every parser of this layer takes the decoded text.
 *
 * @throws QueryError for broken percent-encoding, with the position in the raw string
 */
export function splitQuery(query: string, { plus = 'blank' }: SplitQueryOptions = {}): readonly RawOption[] {
  const options: RawOption[] = []
  let position = 0
  for (const part of query.split('&')) {
    const equals = part.indexOf('=')
    if (part !== '') {
      options.push({
        name: decode(equals < 0 ? part : part.slice(0, equals), position, plus),
        value: equals < 0 ? undefined : decode(part.slice(equals + 1), position + equals + 1, plus),
        position,
      })
    }
    position += part.length + 1
  }
  return options
}
