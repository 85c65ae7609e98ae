import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js'

import { QueryError } from '../query-error.ts'
import { translatePattern } from './translate-pattern.ts'

const maxLength = 500
/** The engine's time for a text grows with the size of the program, which counted repetitions multiply. */
const maxSize = 1000

/**
 * Compiles the pattern of `matchesPattern` into a test that takes linear time whatever the pattern: a backtracking
 * engine would let one query stop the service.
 *
 * @param origin - position of the pattern in the query, for the error
 * @throws QueryError for syntax that is wrong or not supported, and for a pattern that is too large
 */
export function compilePattern(pattern: string, origin: number): (text: string) => boolean {
  if (pattern.length > maxLength)
    throw new QueryError(`The pattern is longer than ${maxLength} characters`, origin)
  const { source, size } = translatePattern(pattern, origin)
  if (size > maxSize) throw new QueryError('The pattern is too large', origin)
  try {
    const compiled = RE2JS.compile(source)
    return (text) => compiled.test(text)
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    const reason = cause instanceof RE2JSSyntaxException ? `: ${cause.getDescription()}` : ''
    throw new QueryError(`The pattern cannot be used${reason}`, origin)
  }
}
