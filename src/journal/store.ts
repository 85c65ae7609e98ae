import type { Kysely, RawBuilder, Transaction } from 'kysely'

import type { CommitGate, Committed, Operation } from './group-commit.ts'
import type { HighWaterMark, MarkFilePlace } from './high-water.ts'
import type { JournalKey } from './seal.ts'
import type { StoreError } from './store-error.ts'
import type { Dialect, JournalTables } from './schema.ts'

/** Operations that are made durable together. */
export interface Group {
  /** The acting instance, which owns the batches that it begins and reopens. */
  readonly instance: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  /** The age of the journal. */
  readonly ageMs: number
  /** Batches that began at this age or before are not recognised any longer where the wall clock says the same. */
  readonly forgottenAgeMs: number
  readonly operations: readonly Operation[]
  /** To be passed right before the commit. */
  readonly gate: CommitGate
}

/** What a store needs to commit groups. */
export interface StoreSecrets {
  readonly salt: Uint8Array
  /** Encrypts; undefined: nothing is encrypted. */
  readonly key: JournalKey | undefined
  readonly mark: HighWaterMark
  readonly replayForMs: number
  /** What tells this process from others, as `processOf` has it. */
  readonly process: string
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
  /**
   * What is wrong with the database's file, as far as it shows without reading all of it; undefined: nothing. To be asked before `db` is
   * used. Error: `ADP_CONFIGURATION` where its connections cannot keep what the journal sets.
   */
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
