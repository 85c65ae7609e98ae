import { damageOf, type StoreError } from '../store-error.ts'

/** SQLSTATE classes and codes (PostgreSQL, appendix A) that an operator can act on; a longer prefix counts first. */
const messages: readonly (readonly [prefix: string, message: string])[] = [
  ['53100', 'the disk of the database is full'],
  ['53300', 'the database has too many connections'],
  ['25006', 'the database is read only'],
  ['3D000', 'there is no such database'],
  ['42501', 'the database denies this user the tables'],
  ['28', 'the database denies this user'],
  ['08', 'the database cannot be reached'],
  ['57', 'the database is shutting down or takes too long'],
  ['40', 'other transactions were in the way'],
]

/** What an error of `pg` means. */
export function toStoreError(error: unknown): StoreError {
  const damage = damageOf(error)
  if (damage !== undefined) return { kind: 'damaged', message: damage, cause: error }
  const code = errorCode(error)
  const isState = /^[0-9A-Z]{5}$/.test(code)
  const known = isState ? messages.find(([prefix]) => code.startsWith(prefix)) : undefined
  const message =
    known?.[1] ?? (isState ? `the database refuses it (${code})` : 'the database cannot be reached')
  // Class 22: data that it cannot take; 23: a constraint.
  const refused = isState && /^2[23]/.test(code)
  if (isState && code.startsWith('XX00') && code !== 'XX000') {
    return { kind: 'damaged', message: `the database is damaged (${code})`, cause: error }
  }
  if (isMistake(code)) {
    return {
      kind: 'internal',
      message: `internal error: PostgreSQL does not take a statement (${code})`,
      cause: error,
    }
  }
  // Class 40: a deadlock, or a transaction that could not be put in order.
  const contended = isState && code.startsWith('40')
  return {
    kind: refused ? 'refused' : 'transient',
    message,
    cause: error,
    ...(contended ? { contended } : {}),
  }
}

/**
 * Class 42: the statement does not fit the tables or the server. Not so what an operator can cause and undo: a missing
 * privilege (42501), and a table that is not there, or not yet (42P01).
 */
const isMistake = (code: string): boolean =>
  /^42[0-9A-Z]{3}$/.test(code) && code !== '42501' && code !== '42P01'

function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}
