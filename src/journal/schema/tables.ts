import type { Generated } from 'kysely'

import type { RolloutTables } from './rollout-tables.ts'

/**
 * The tables of the journal, the same for SQLite and PostgreSQL (docs/decisions/006-journal.md). Times are milliseconds since
 * the epoch; flags are 0 or 1, since SQLite has no booleans.
 */
export interface JournalTables extends RolloutTables {
  /**
   * `schema`: version of the tables. `salt`: 16 bytes in hexadecimal, for the hashes of record keys. `identity`: what tells
   * this journal from any other. `read_back_until`: until then (ms since the epoch) new records are looked for in V3 before they
   * are posted; `read_back_from_age`: the age of the journal when that began. `age`: the age of the journal, and which batches were
   * there at which age (ageing.ts). `asked: <batch>`: the instance that asks for a batch (hand-over.ts). `mac_key`: the sealed key of the MACs of stages (mac-key.ts). `unclean end: <how>`:
   * when an instance was last found gone (unclean-ends.ts). In PostgreSQL also the mark of the last ordered group of each instance.
   */
  readonly journal_meta: { readonly name: string; readonly value: string }
  /** Keys that something here is encrypted with; `proof` tells another key of the same id. */
  readonly journal_keys: { readonly id: string; readonly proof: Uint8Array }
  readonly journal_instances: InstanceTable
  readonly journal_batches: BatchTable
  /** The request of a batch. A table of its own: what changes often stays small. */
  readonly journal_payloads: SealedTable
  readonly journal_credentials: SealedTable
  readonly journal_records: RecordTable
  /** Answers, several in one row; of two for one position the later row counts. */
  readonly journal_answers: SealedTable & { readonly id: Generated<number> }
  readonly journal_ledger: LedgerTable
  readonly journal_pace: PaceTable
  readonly journal_commits: CommitTable
}

/** The tables with the rows of a batch, and the column of its number; the batch itself is the last. */
export const batchTables = [
  ['journal_payloads', 'batch'],
  ['journal_credentials', 'batch'],
  ['journal_answers', 'batch'],
  ['journal_records', 'batch'],
  ['journal_batches', 'id'],
] as const

/** Groups that were committed: the number is the sum over slots, since those that commit at the same time change different rows. */
interface CommitTable {
  readonly slot: number
  readonly commits: number
}

interface InstanceTable {
  readonly id: Generated<number>
  readonly host: string
  /** The machine's start and process namespace; empty where there is none to read. */
  readonly boot: string
  readonly pid: number
  /** When the process started, as the machine counts; empty where there is none to read. */
  readonly started: string
  /** Changes with every renewal. */
  readonly lease_until: number
  /** The length of its lease; null for an instance of an older version. */
  readonly lease_ms: number | null
}

interface BatchTable {
  readonly id: Generated<number>
  readonly partner: string
  /** Whose batch it is; empty where that was not kept yet. `owner` below is another thing. */
  readonly owner_id: string
  readonly ids: Uint8Array | null
  readonly content: Uint8Array
  readonly received_ms: number
  /** The instance that may settle it. */
  readonly owner: number
  /** How many of its records are open. */
  readonly open: number
  /** How many of its records are live. */
  readonly live: number
  /** 1 once its reply was written out whole. */
  readonly answered: number
  /** 1 once its client used its ids for another batch after it had the answer: it is never found again. */
  readonly retired: number
  /** A code of `side.ts`. */
  readonly side: number
  /** 1 while neither V3 nor V2 has accepted the credentials that it came with. */
  readonly newcomer: Generated<number>
  /** The batches that it retires once they are accepted: numbers in a JSON array; null: none. */
  readonly retires: string | null
  /** Of its request, before it is compressed, with some for each record; 0: it is deleted. */
  readonly bytes: Generated<number>
  /** A checksum of the others (row-sums.ts); null in a row of a version that kept none. */
  readonly sum: number | null
}

interface RecordTable {
  readonly batch: number
  readonly position: number
  /** 16 bytes of the salted hash of the key. */
  readonly key: Uint8Array
  /** A code of `lifecycle.ts`. */
  readonly state: number
  /** 1 while it is open, due, or may be sent again: only then it is in the index of keys. */
  readonly live: number
  /** Null: never. -1: with the same batch. Otherwise when it is due. While open: what it was before. */
  readonly again: number | null
  readonly reason: string | null
  readonly attempts: number
  readonly superseded: number
  readonly dead_letter: number
  readonly settled_ms: number | null
  /** Of a confirmed record: the mark of the service (store/mark-hash.ts). */
  readonly mark: Uint8Array | null
  /** A checksum of what decides (row-sums.ts); null in a row of a version that kept none. */
  readonly sum: number | null
  /** `key` once more, since no SQL of both databases makes a checksum of bytes. */
  readonly key_copy: Uint8Array | null
}

interface SealedTable {
  readonly batch: number
  /** The key that `body` is encrypted with; null: it is not. */
  readonly key_id: string | null
  readonly body: Uint8Array
}

/** When calls with one key may leave, over all instances. */
interface PaceTable {
  /** Hash of the key, salted. */
  readonly name: Uint8Array
  /** The latest turns that were given out, oldest first: times in a JSON array. */
  readonly turns: string
  readonly held_until: number
  /** From then on the turns hold no call back. */
  readonly idle_from: number
}

interface LedgerTable {
  readonly partner: string
  /** Totals are the sum over slots: instances that settle at the same time change different rows. */
  readonly slot: number
  readonly open: number
  readonly confirmed: number
  readonly refused: number
  readonly unknown: number
  readonly parked: number
}
