import type { Expr } from '../ast.ts'
import { Cursor, type QueryLimits } from './cursor.ts'
import { parseExpressionAt } from './parse-expression.ts'

/**
 * Reads the value of `$filter`, or any other common expression of OData 4.01, from percent-decoded text. Keywords and
 * function names are accepted in any case; blanks around the whole text are ignored. Takes linear time.
 *
 * @throws QueryError (`ADP_QUERY`, 400) with the character position
 * @example parseFilter("Attendee/ExternalID eq 01234567-89ab-cdef-0123-456789abcdef and not (Present eq true)")
 */
export function parseFilter(text: string, limits?: QueryLimits): Expr {
  const cursor = new Cursor(text, limits)
  cursor.skipBlanks()
  const expression = parseExpressionAt(cursor)
  cursor.expectEnd('an operator or the end of the expression')
  return expression
}
