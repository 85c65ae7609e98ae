import { AdapterError } from '../errors.ts'

/**
 * The reason why a group was not made durable.
 *
 * `transient`: nothing was stored, and the group can be retried. `doubtful`: the connection was lost during the commit. `refused`: the
 * database cannot store the data at all. `expired`: another instance declared this instance dead. `internal`: the database does not
 * understand a statement, so a retry fails again. `damaged`: the database is not the database that this journal wrote.
 */
export interface StoreError {
  readonly kind: 'transient' | 'doubtful' | 'refused' | 'expired' | 'internal' | 'damaged'
  /** The reason for the operator, such as `the disk is full`. Never contains a value of a record. */
  readonly message: string
  readonly cause?: unknown
  /** True if other transactions caused the failure and the store itself works. */
  readonly contended?: boolean
  /** What an operator can do, in whole sentences. `undefined` if `message` already says enough. */
  readonly remedy?: string
}

export const gaveUp: StoreError = { kind: 'transient', message: 'it does not respond in time' }

/** The reason for a rollback because other instances declared this instance dead. */
export const expired: StoreError = { kind: 'expired', message: 'another instance has taken over' }

export function damagedStore(place: string, what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal ${place} is damaged or was replaced: ${what}. If the adapter used this journal, it could post records twice. ` +
      'If the newest file still exists with its -wal and .mark, put them back. To see what it means to accept the loss, run markbridge journal adopt.',
    { cause },
  )
}

export function unopenedStore(place: string, { message, remedy }: StoreError, cause: unknown): AdapterError {
  const text = `The journal ${place} cannot be opened: ${message}. Nothing was written.`
  return new AdapterError('ADP_JOURNAL_UNAVAILABLE', remedy === undefined ? text : `${text} ${remedy}`, {
    cause,
  })
}

/** Creates the error of a damaged journal. `what` must not contain a value of a record. */
export function damagedJournal(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged or was replaced: ${what}. Nothing was sent now. The operator must restore the journal or accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'journal' }] },
  )
}

/** Creates the error of a damaged row. `what` names the kind of the row and the batch. */
export function damagedRow(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged: ${what}. Nothing was sent, and no stored reply was used. The operator must accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'row' }] },
  )
}

export const isDamagedBatch = (error: unknown): boolean =>
  error instanceof AdapterError && error.code === 'ADP_JOURNAL_DAMAGED' && error.details[0]?.target === 'row'

/** Returns the damage that an error reports, or `undefined` if it reports no damage. Also reads errors that another thread sent. */
export function damageOf(error: unknown): string | undefined {
  if (error instanceof AdapterError)
    return error.code === 'ADP_JOURNAL_DAMAGED' ? error.details[0]?.message : undefined
  const damage = memberOf(error, 'damage')
  return typeof damage === 'string' ? damage : undefined
}

export type Meaning = readonly [kind: StoreError['kind'], message: string]

export const REFUSES = 'the database rejects the operation'
const sqliteMistake: Meaning = ['internal', 'internal error: SQLite rejects a statement']
const sqliteRefusal: Meaning = ['refused', REFUSES]

/** Maps SQLite's result codes (sqlite.org/rescode.html) to their meanings. An extended code is looked up before its primary code. */
const sqliteMeanings: Readonly<Record<number, readonly [...Meaning, remedy?: string]>> = {
  // SQLITE_ERROR, SQLITE_MISUSE and SQLITE_RANGE: the statement or its parameters do not fit the tables or this version of node:sqlite.
  1: sqliteMistake,
  21: sqliteMistake,
  25: sqliteMistake,
  5: ['transient', 'another program has locked the database'],
  6: ['transient', 'another program has locked the database'],
  8: ['transient', 'the file cannot be written'],
  10: ['transient', 'the disk cannot be read or written'],
  13: ['transient', 'the disk is full'],
  14: [
    'transient',
    'the file cannot be opened',
    'Check its path, and that the user of the adapter may write to its folder. The serve command creates a missing journal.',
  ],
  // Neither waiting nor free space repairs the errors 11, 26 and 522, because the file does not contain what SQLite wrote.
  11: ['damaged', 'the database file is damaged'],
  26: ['damaged', 'the file is not a database'],
  // SQLITE_IOERR_SHORT_READ: the file ends before its last page.
  522: ['damaged', 'the database file is truncated'],
  // SQLITE_READONLY_DBMOVED.
  1032: ['damaged', 'its file was deleted or renamed while it was in use'],
  // SQLITE_TOOBIG, SQLITE_CONSTRAINT and SQLITE_MISMATCH.
  18: sqliteRefusal,
  19: sqliteRefusal,
  20: sqliteRefusal,
}

/** Returns the meaning of an error of node:sqlite. Also reads errors that another thread sent, which lack their own members. */
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
 * Returns the meaning of an error of SQLite's COMMIT. After IOERR the transaction may already be in the write-ahead log. The next process
 * would then apply the transaction, so the outcome is in doubt.
 */
export function toSqliteCommitError(error: unknown): StoreError {
  const storeError = toSqliteError(error)
  const isInDoubt = storeError.kind === 'transient' && (sqliteCode(error) & 0xff) === 10
  return isInDoubt ? { ...storeError, kind: 'doubtful' } : storeError
}

export const isSqliteBusy = (error: unknown): boolean => (sqliteCode(error) & 0xff) === 5

const sqliteCode = (error: unknown): number => Number(memberOf(error, 'errcode') ?? 0)

/** Returns a member of an error that another thread or library may have created. */
export function memberOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}
