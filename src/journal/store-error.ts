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
  /** What an operator can do about it, as sentences, where more is known than the message says. */
  readonly remedy?: string
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

/** The error of a journal that cannot be opened now: why, that nothing was written, and the remedy. */
export function unopenedStore(place: string, { message, remedy }: StoreError, cause: unknown): AdapterError {
  const text = `The journal ${place} cannot be opened: ${message}. Nothing was written.`
  return new AdapterError('ADP_JOURNAL_UNAVAILABLE', remedy === undefined ? text : `${text} ${remedy}`, {
    cause,
  })
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

export type Meaning = readonly [kind: StoreError['kind'], message: string]

export const REFUSES = 'the database refuses it'
const sqliteMistake: Meaning = ['internal', 'internal error: SQLite does not take a statement']
const sqliteRefusal: Meaning = ['refused', REFUSES]

/** What the result codes of SQLite mean (sqlite.org/rescode.html), an extended one before its primary one. */
const sqliteMeanings: Readonly<Record<number, readonly [...Meaning, remedy?: string]>> = {
  // ERROR, MISUSE, RANGE: the statement or its parameters do not fit the tables, or this version of node:sqlite.
  1: sqliteMistake,
  21: sqliteMistake,
  25: sqliteMistake,
  5: ['transient', 'another program holds the database'],
  6: ['transient', 'another program holds the database'],
  8: ['transient', 'the file cannot be written'],
  10: ['transient', 'the disk cannot be read or written'],
  13: ['transient', 'the disk is full'],
  14: [
    'transient',
    'the file cannot be opened',
    'Check its path, and that the user of the adapter may write its folder; serve creates a journal that is not there.',
  ],
  // Neither room nor time repairs these: the content of the file is not SQLite's.
  11: ['damaged', 'the database file is damaged'],
  26: ['damaged', 'the file is not a database'],
  // IOERR_SHORT_READ: the file ends before its pages do.
  522: ['damaged', 'the database file is cut short'],
  // READONLY_DBMOVED.
  1032: ['damaged', 'its file was deleted or renamed while it was in use'],
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
  const [kind, message, remedy] = sqliteMeanings[code] ??
    sqliteMeanings[code & 0xff] ?? [error instanceof TypeError ? 'refused' : 'transient', REFUSES]
  return {
    kind,
    message: kind === 'internal' ? `${message} (${code & 0xff})` : message,
    cause: error,
    ...(remedy === undefined ? {} : { remedy }),
  }
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

/** The member of an error, which another thread or library may have made. */
export function memberOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
