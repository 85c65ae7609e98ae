import { AdapterError } from '../errors.ts'

/**
 * Why a group was not made durable. `transient`: nothing was kept, and it can be tried again. `doubtful`: the connection was
 * lost while the transaction ended. `refused`: the data cannot be stored at all. `expired`: this instance is no longer
 * known, since another one took it for dead. `internal`: a statement that this database does not understand, which no
 * repetition changes. `damaged`: the database is not the one that this journal has written.
 */
export interface StoreError {
  readonly kind: 'transient' | 'doubtful' | 'refused' | 'expired' | 'internal' | 'damaged'
  /** For the operator, without any value: `the disk is full`. */
  readonly message: string
  readonly cause?: unknown
  /** True: others were in the way, and the store itself is well. */
  readonly contended?: boolean
}

/** Why a group was rolled back whose gate was closed. */
export const gaveUp: StoreError = { kind: 'transient', message: 'it does not answer in time' }

/** Why a group of an instance was rolled back that others took for dead. */
export const expired: StoreError = { kind: 'expired', message: 'another instance has taken over' }

/** The error of opening a damaged journal: the damage, its place, and the remedy. */
export function damagedStore(place: string, what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal ${place} is damaged or was replaced: ${what}. Writes on it could be posted twice. ` +
      'Restore the journal with the files beside it, or list the consequences of accepting the loss: markbridge journal adopt.',
    { cause },
  )
}

/** The error for a request that met a damaged journal. `what` holds no value. */
export function damagedJournal(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged or was replaced: ${what}. Nothing was sent. Its operator has to restore it or to accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'journal' }] },
  )
}

/** The error for a request that met a damaged request or answer. `what` names the kind and the batch. */
export function damagedRow(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged: ${what}. Nothing was sent and nothing is answered from it. Its operator has to accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'row' }] },
  )
}

/** True for an error of one batch, whose request or answers cannot be read. */
export const isDamagedBatch = (error: unknown): boolean =>
  error instanceof AdapterError && error.code === 'ADP_JOURNAL_DAMAGED' && error.details[0]?.target === 'row'

/** What an error says of a damaged journal, also one that was sent by another thread; undefined: it says nothing of that. */
export function damageOf(error: unknown): string | undefined {
  if (error instanceof AdapterError)
    return error.code === 'ADP_JOURNAL_DAMAGED' ? error.details[0]?.message : undefined
  const damage = memberOf(error, 'damage')
  return typeof damage === 'string' ? damage : undefined
}

type Meaning = readonly [kind: StoreError['kind'], message: string]

const REFUSES = 'the database refuses it'
const sqliteMistake: Meaning = ['internal', 'internal error: SQLite does not take a statement']
const sqliteRefusal: Meaning = ['refused', REFUSES]

/** What the result codes of SQLite mean (sqlite.org/rescode.html), an extended one before its primary one. */
const sqliteMeanings: Readonly<Record<number, Meaning>> = {
  // ERROR, MISUSE, RANGE: the statement or its parameters do not fit the tables, or this version of node:sqlite.
  1: sqliteMistake,
  21: sqliteMistake,
  25: sqliteMistake,
  5: ['transient', 'another program holds the database'],
  6: ['transient', 'another program holds the database'],
  8: ['transient', 'the file cannot be written'],
  10: ['transient', 'the disk cannot be read or written'],
  13: ['transient', 'the disk is full'],
  14: ['transient', 'the file cannot be opened'],
  // Neither room nor time repairs these: the content of the file is not SQLite's.
  11: ['damaged', 'the database file is damaged'],
  26: ['damaged', 'the file is not a database'],
  // IOERR_SHORT_READ: the file ends before its pages do.
  522: ['damaged', 'the database file is cut short'],
  // TOOBIG, CONSTRAINT, MISMATCH.
  18: sqliteRefusal,
  19: sqliteRefusal,
  20: sqliteRefusal,
}

/** What an error of node:sqlite means. Also for one that was sent by another thread, which keeps no members of its own. */
export function toSqliteError(error: unknown): StoreError {
  const damage = damageOf(error)
  if (damage !== undefined) return { kind: 'damaged', message: damage, cause: error }
  const code = sqliteCode(error)
  const [kind, message] = sqliteMeanings[code] ??
    sqliteMeanings[code & 0xff] ?? [error instanceof TypeError ? 'refused' : 'transient', REFUSES]
  return { kind, message: kind === 'internal' ? `${message} (${code & 0xff})` : message, cause: error }
}

/**
 * What an error of SQLite's COMMIT means. After IOERR the transaction may be in the log as a whole, where it is found when this process
 * dies before another one takes its place there.
 */
export function toSqliteCommitError(error: unknown): StoreError {
  const storeError = toSqliteError(error)
  const isInDoubt = storeError.kind === 'transient' && (sqliteCode(error) & 0xff) === 10
  return isInDoubt ? { ...storeError, kind: 'doubtful' } : storeError
}

/** True where another connection holds the lock that was needed (BUSY). */
export const isSqliteBusy = (error: unknown): boolean => (sqliteCode(error) & 0xff) === 5

const sqliteCode = (error: unknown): number => Number(memberOf(error, 'errcode') ?? 0)

/** What SQLSTATE classes and codes mean (PostgreSQL, appendix A); the first that fits counts. */
const postgresMeanings: readonly (readonly [prefix: string, ...Meaning])[] = [
  ['53100', 'transient', 'the disk of the database is full'],
  ['53300', 'transient', 'the database has too many connections'],
  ['25006', 'transient', 'the database is read only'],
  ['3D000', 'transient', 'there is no such database'],
  // What an operator can cause and undo: a missing privilege, and a table that is not there, or not yet.
  ['42501', 'transient', 'the database denies this user the tables'],
  ['42P01', 'transient', REFUSES],
  ['42', 'internal', 'internal error: PostgreSQL does not take a statement'],
  // Data that it cannot take, and a constraint.
  ['22', 'refused', REFUSES],
  ['23', 'refused', REFUSES],
  ['28', 'transient', 'the database denies this user'],
  ['08', 'transient', 'the database cannot be reached'],
  ['57', 'transient', 'the database is shutting down or takes too long'],
  // A deadlock, or a transaction that could not be put in order.
  ['40', 'transient', 'other transactions were in the way'],
  ['XX000', 'transient', REFUSES],
  ['XX00', 'damaged', 'the database is damaged'],
]

/** What an error of `pg` means. */
export function toPostgresError(error: unknown): StoreError {
  const damage = damageOf(error)
  if (damage !== undefined) return { kind: 'damaged', message: damage, cause: error }
  const code = memberOf(error, 'code')
  if (typeof code !== 'string' || !/^[0-9A-Z]{5}$/.test(code))
    return { kind: 'transient', message: 'the database cannot be reached', cause: error }
  const known = postgresMeanings.find(([prefix]) => code.startsWith(prefix))
  const [, kind, message] = known ?? ['', 'transient', REFUSES]
  const isExplained = kind === 'transient' && message !== REFUSES
  return {
    kind,
    message: isExplained ? message : `${message} (${code})`,
    cause: error,
    ...(code.startsWith('40') ? { contended: true } : {}),
  }
}

function memberOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
