import { type Expr, isGuid, printQuery } from '../odata/index.ts'
import { compare, joined, literal, member } from './expressions.ts'

/** The raw V3 query, without `?`, of the attendance codes with these letters, at least one. */
export function toCodeQuery(letters: readonly string[]): string {
  const isCode = (letter: string): Expr => compare(member('Code'), 'eq', literal('Edm.String', letter))
  return printQuery({ filter: joined('or', letters.map(isCode)) })
}

/**
 * The id of an attendance code with one of these letters, from a row of V3's lookup (service-facts 7); undefined for any other
 * row. The comparison is case-sensitive, since the service's may not be.
 */
export function codeIdOf(row: unknown, letters: ReadonlySet<string>): string | undefined {
  if (typeof row !== 'object' || row === null) return undefined
  const { ExternalID: id, Code: code, LookupType: type } = row as Readonly<Record<string, unknown>>
  // A lookup may contain more than codes; a type name may have a namespace (service-facts 14).
  if (typeof type === 'string' && !/(?:^|\.)AttendanceCode$/i.test(type)) return undefined
  return typeof id === 'string' && isGuid(id) && typeof code === 'string' && letters.has(code)
    ? id
    : undefined
}
