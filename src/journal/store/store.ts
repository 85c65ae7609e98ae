import type { Kysely, RawBuilder } from 'kysely'

import type { MarkPlace } from '../high-water/check-mark.ts'
import type { HighWaterMark } from '../high-water/mark-file.ts'
import type { Exclusively } from '../schema/migrate.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { CommitGate } from './commit-gate.ts'
import type { StoreError } from './store-error.ts'
import type { Operation, OperationResult } from './operations.ts'

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

/** The salt of the journal, the key that encrypts, and how far the journal has come. */
export interface StoreSecrets {
  readonly salt: Uint8Array
  readonly key: JournalKey | undefined
  readonly mark: HighWaterMark
}

/** A key of AES-256 with its name. */
export interface JournalKey {
  readonly id: string
  /** 32 bytes. */
  readonly key: Uint8Array
}

/** A database with the journal's tables. */
export interface Store {
  readonly dialect: 'sqlite' | 'postgres'
  /** Its address without any password. */
  readonly place: string
  /** For everything that is not on the way of a record. Rejects with the driver's own errors. */
  readonly db: Kysely<JournalTables>
  readonly exclusively: Exclusively
  /** Where its mark is kept; undefined: in memory alone. */
  readonly mark: MarkPlace | undefined
  /** What is wrong with the database itself; undefined: nothing that is found in a bounded time. To be asked before `db` is used. */
  findDamage(): Promise<string | undefined>
  /** True: a group of settles may run beside another group. One at a time: larger groups cost less than more at once. */
  readonly settlesApart: boolean
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
