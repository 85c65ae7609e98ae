import type { Kysely, RawBuilder, Transaction } from 'kysely'

import type { CommitGate, Committed, Operation } from './group-commit.ts'
import type { HighWaterMark, HighWaterFilePlace } from './high-water.ts'
import type { JournalKey } from './seal.ts'
import type { StoreError } from './store-error.ts'
import type { Dialect, JournalTables } from './schema.ts'

export interface Group {
  /** The acting instance, which owns the batches that it begins and reopens. */
  readonly instance: number
  /** Wall-clock time in milliseconds since the epoch. */
  readonly nowMs: number
  readonly ageMs: number
  /** A batch that began at this age of the journal or earlier is recognised only while it is younger than `replayForMs` by the wall clock. */
  readonly forgottenAgeMs: number
  readonly operations: readonly Operation[]
  readonly gate: CommitGate
}

export interface StoreSecrets {
  readonly salt: Uint8Array
  /** The key that encrypts content, or `undefined` if the journal has no keys. */
  readonly key: JournalKey | undefined
  readonly mark: HighWaterMark
  readonly replayForMs: number
  readonly process: string
}

/** Runs work in a transaction. No other instance changes batches or records until the transaction ends. */
export type Exclusively = <Result>(
  work: (transaction: Transaction<JournalTables>) => Promise<Result>,
) => Promise<Result>

export interface Store {
  readonly dialect: Dialect
  /** The address of the database without its password. */
  readonly place: string
  /** The database, for all queries that are not part of handling a record. Queries reject with the errors of the driver. */
  readonly db: Kysely<JournalTables>
  readonly exclusively: Exclusively
  /** The high-water file, or `undefined` if the store keeps the mark only in memory. */
  readonly highWaterFile: HighWaterFilePlace | undefined
  /**
   * Returns damage that is visible without reading the whole file, or `undefined` if none is visible. Must be called before `db` is used.
   * Throws `ADP_CONFIGURATION` if a connection pooler would lose the settings that the journal makes.
   */
  findDamage(): Promise<string | undefined>
  /** Reads the whole SQLite file and returns its damage, or `undefined` if the file is not damaged. Always `undefined` for PostgreSQL. */
  checkIntegrity(): Promise<string | undefined>
  /** Returns SQL for the clock by which leases are measured, in milliseconds since the epoch. */
  nowMs(): RawBuilder<number>
  /** Prepares commits. Must be called once, before the first `commit`. */
  prepare(secrets: StoreSecrets): Promise<void>
  /** Makes a group durable, either all its operations or none. Never rejects. */
  commit(group: Group): Promise<Committed>
  toStoreError(error: unknown): StoreError
  close(): Promise<void>
}
