import { damageOf, type StoreError } from '../store-error.ts'

/** Primary result codes of SQLite (sqlite.org/rescode.html) that an operator can act on. */
const messages: Readonly<Record<number, string>> = {
  5: 'another program holds the database',
  6: 'another program holds the database',
  8: 'the file cannot be written',
  10: 'the disk cannot be read or written',
  13: 'the disk is full',
  14: 'the file cannot be opened',
}
/** Errors that an operator cannot repair by making room or waiting: the content of the file is not SQLite's. */
const damages: Readonly<Record<number, string>> = {
  11: 'the database file is damaged',
  26: 'the file is not a database',
}
/** CONSTRAINT, MISMATCH, TOOBIG: the data cannot be stored. */
const refusals: ReadonlySet<number> = new Set([19, 20, 18])
/** ERROR, MISUSE, RANGE: the statement or its parameters do not fit the tables, or this version of node:sqlite. */
const mistakes: ReadonlySet<number> = new Set([1, 21, 25])
/** IOERR_SHORT_READ: the file ends before its pages do. */
const SHORT_READ = 522

/** What an error of node:sqlite means. Also for one that was sent by another thread, which keeps no members of its own. */
export function toStoreError(error: unknown): StoreError {
  const damaged = damageOf(error)
  if (damaged !== undefined) return { kind: 'damaged', message: damaged, cause: error }
  const extended = errorCode(error)
  const code = extended & 0xff
  const damage = extended === SHORT_READ ? 'the database file is cut short' : damages[code]
  if (damage !== undefined) return { kind: 'damaged', message: damage, cause: error }
  if (mistakes.has(code)) {
    return {
      kind: 'internal',
      message: `internal error: SQLite does not take a statement (${code})`,
      cause: error,
    }
  }
  const message = messages[code] ?? 'the database refuses it'
  const refused = refusals.has(code) || error instanceof TypeError
  return { kind: refused ? 'refused' : 'transient', message, cause: error }
}

/**
 * What an error of COMMIT means. After IOERR the transaction may be in the log as a whole, where it is found when this process dies
 * before another one takes its place there.
 */
export function toCommitError(error: unknown): StoreError {
  const storeError = toStoreError(error)
  return storeError.kind === 'transient' && (errorCode(error) & 0xff) === 10
    ? { ...storeError, kind: 'doubtful' }
    : storeError
}

/** True where another connection holds the lock that was needed (BUSY). */
export function isBusy(error: unknown): boolean {
  return (errorCode(error) & 0xff) === 5
}

function errorCode(error: unknown): number {
  if (typeof error !== 'object' || error === null || !('errcode' in error)) return 0
  return Number(error.errcode)
}
