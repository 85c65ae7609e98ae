/** A value bound to a `?`; truth values are bound as 1 and 0. */
export type SqlParameter = string | number

/** A piece of SQL with one `?` for each parameter, in their order. */
export interface SqlFragment {
  readonly sql: string
  readonly parameters: readonly SqlParameter[]
}

/** A fragment that is being put together, with the height of its expression tree. */
export interface SqlTerm extends SqlFragment {
  readonly height: number
}

// SQLite refuses trees higher than 1000 and more than 32,766 parameters; both bounds leave room for the caller's own.
const maxHeight = 500
const maxParameters = 30_000

/** Text without parameters. */
export const plain = (sql: string): SqlTerm => ({ sql, parameters: [], height: 1 })

/** A single parameter. */
export const bind = (value: SqlParameter): SqlTerm => ({ sql: '?', parameters: [value], height: 1 })

/**
 * Puts terms together: `term` holds one `{}` for each of them, in their order. `undefined` where one of them is, or
 * where SQLite would refuse the result.
 */
export function build(template: string, ...terms: readonly (SqlTerm | undefined)[]): SqlTerm | undefined {
  const parameters: SqlParameter[] = []
  let height = 0
  let sql = ''
  const texts = template.split('{}')
  for (const [position, text] of texts.entries()) {
    sql += text
    if (position === texts.length - 1) break
    const term = terms[position]
    if (term === undefined) return undefined
    sql += term.sql
    for (const parameter of term.parameters) parameters.push(parameter)
    height = Math.max(height, term.height)
  }
  // Every operator and call of a template is inside parentheses of its own.
  const total = height + template.split('(').length
  return total > maxHeight || parameters.length > maxParameters
    ? undefined
    : { sql, parameters, height: total }
}

/** Joins terms with AND or OR as a balanced tree, so that a thousand alternatives stay ten operators high. */
export function joinBalanced(terms: readonly SqlTerm[], operator: 'AND' | 'OR'): SqlTerm | undefined {
  const [first] = terms
  if (first === undefined) return plain(operator === 'AND' ? '1' : '0')
  if (terms.length === 1) return first
  const middle = terms.length >> 1
  const left = joinBalanced(terms.slice(0, middle), operator)
  const right = joinBalanced(terms.slice(middle), operator)
  return build(`({} ${operator} {})`, left, right)
}
