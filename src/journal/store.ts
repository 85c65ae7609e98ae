import type { Kysely, RawBuilder, Transaction } from 'kysely'

import { AdapterError } from '../errors.ts'
import type { CommitGate, Operation, OperationResult } from './group-commit.ts'
import type { HighWaterMark, MarkFilePlace } from './high-water.ts'
import type { JournalKey } from './seal.ts'
import type { JournalTables } from './tables.ts'

/** The two databases. */
export type Dialect = 'sqlite' | 'postgres'

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

/** Operations that are made durable together. */
export interface Group {
  /** The acting instance, which owns the batches that it begins and reopens. */
  readonly instance: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** Batches up to this number are not recognised any longer where the wall clock says the same. */
  readonly forgottenBatch: number
  readonly operations: readonly Operation[]
  /** To be passed right before the commit. */
  readonly gate: CommitGate
}

/** The results in the order of the operations, or why there are none. */
export type Committed =
  | { readonly ok: true; readonly results: readonly OperationResult[] }
  | { readonly ok: false; readonly error: StoreError }

/** What a store needs to commit groups. */
export interface StoreSecrets {
  readonly salt: Uint8Array
  /** Encrypts; undefined: nothing is encrypted. */
  readonly key: JournalKey | undefined
  readonly mark: HighWaterMark
  readonly replayForMs: number
}

/** Runs work alone: no other instance changes batches or records meanwhile. */
export type Exclusively = <Result>(
  work: (transaction: Transaction<JournalTables>) => Promise<Result>,
) => Promise<Result>

/** A database with the journal's tables. */
export interface Store {
  readonly dialect: Dialect
  /** Its address without any password. */
  readonly place: string
  /** For everything that is not on the way of a record. Rejects with the driver's own errors. */
  readonly db: Kysely<JournalTables>
  readonly exclusively: Exclusively
  /** Where its mark file is; undefined: the mark is kept in memory alone. */
  readonly markFile: MarkFilePlace | undefined
  /** What is wrong with the database's file, as far as it shows without reading all of it; undefined: nothing. To be asked before `db` is used. */
  findDamage(): Promise<string | undefined>
  /** As `findDamage`, and reads all of a file. */
  checkIntegrity(): Promise<string | undefined>
  /** The time that leases are measured in, as SQL. */
  nowMs(): RawBuilder<number>
  /** To be called once, before the first `commit`. */
  prepare(secrets: StoreSecrets): Promise<void>
  /** Makes a group durable as a whole or not at all. Never rejects. */
  commit(group: Group): Promise<Committed>
  /** Classifies an error of the driver. */
  toStoreError(error: unknown): StoreError
  close(): Promise<void>
}

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
  if (typeof error !== 'object' || error === null || !('damage' in error)) return undefined
  return typeof error.damage === 'string' ? error.damage : undefined
}
