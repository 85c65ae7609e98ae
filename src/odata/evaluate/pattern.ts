import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'

import { QueryError } from '../query-error.ts'

const maxLength = 500
/** Characters of a pattern, times the copies that its counted repetitions ask for: the engine's program grows with them. */
const maxSize = 4000

/**
 * Compiles the pattern of `matchesPattern`, in the syntax of RE2, into a test that takes linear time whatever the pattern: a
 * backtracking engine would let one query stop the service.
 *
 * @param origin - position of the pattern in the query, for the error
 * @throws QueryError for syntax that is wrong or not supported, and for a pattern that is too large
 */
export function compilePattern(pattern: string, origin: number): (text: string) => boolean {
  if (pattern.length > maxLength)
    throw new QueryError(`The pattern is longer than ${maxLength} characters`, origin)
  // Repetitions may be nested, so all of them multiply.
  const counts = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].map(([, low, high]) =>
    Math.max(1, Number(low), Number(high ?? 0)),
  )
  if (counts.reduce((size, count) => size * count, pattern.length) > maxSize)
    throw new QueryError('The pattern is too large', origin)
  try {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern))
    return (text) => compiled.test(text)
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    const reason = cause instanceof RE2JSSyntaxException ? `: ${cause.getDescription()}` : ''
    throw new QueryError(`The pattern cannot be used${reason}`, origin)
  }
}
