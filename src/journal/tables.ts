import type { Generated } from 'kysely'

/**
 * The tables of the journal, the same for SQLite and PostgreSQL (docs/decisions/006-journal.md). Times are milliseconds since
 * the epoch; flags are 0 or 1, since SQLite has no booleans; digests and hashes are hexadecimal text, so that lists of rows are JSON.
 */
export interface JournalTables extends RolloutTables {
  /**
   * `version`: of the tables. `salt`: 16 bytes in hexadecimal, for the hashes of record keys. `identity`: tells this journal from any
   * other. `read_back_until`: until then (ms since the epoch) new records
   * are looked for in V3 before they are posted; `read_back_from_age`: the age of the journal when that began. `age`: the age of the
   * journal (ageing.ts).
   * `unclean end: <how>`: when an instance was last found gone.
   * `mac_key`: the sealed key of the MACs of stages (keys.ts). `note: <name>`: a text of the adapter. `database`: in PostgreSQL,
   * which database the journal is in (high-water.ts).
   */
  readonly journal_meta: { readonly name: string; readonly value: string }
  /** Keys that something here is encrypted with; `proof` tells another key of the same id. */
  readonly journal_keys: { readonly id: string; readonly proof: string }
  readonly journal_instances: InstanceTable
  readonly journal_batches: BatchTable
  /** The request of a batch. A table of its own: SQLite writes a row anew with all its pages when any column changes. */
  readonly journal_payloads: SealedTable
  readonly journal_credentials: SealedTable
  readonly journal_records: RecordTable
  /** Answers, several in one row; of two for one position the later row counts. */
  readonly journal_answers: SealedTable & { readonly id: Generated<number> }
  /** The totals of a partner. */
  readonly journal_ledger: { readonly partner: string } & Readonly<
    Record<'open' | 'confirmed' | 'refused' | 'unknown' | 'parked', number>
  >
  readonly journal_rate_slots: RateSlotTable
  /**
   * Groups that were committed. A slot is of one instance, as far as there are not too many (high-water.ts). `last_batch`: the highest
   * number that it gave a batch. `marker`: names its last group, and tells later whether a commit without an answer was made.
   */
  readonly journal_commits: {
    readonly slot: number
    readonly commits: number
    readonly last_batch: number
    readonly marker: string | null
  }
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
  readonly lease_ms: number
  /** 1: others have taken over from it, and it may still run. */
  readonly lost: Generated<number>
}

interface BatchTable {
  readonly id: number
  readonly partner: string
  /** Whose batch it is. */
  readonly owner: string
  readonly ids: string | null
  readonly content: string
  readonly received_ms: number
  /** The age of the journal when it began. */
  readonly age_ms: Generated<number>
  /** The instance that may settle it. */
  readonly instance: number
  /** How many of its records are open. */
  readonly open: number
  /** How many of its records are active. */
  readonly active: number
  /** 1 once its reply was written out whole. */
  readonly answered: number
  /** 1 once its client used its ids for another batch after it had the answer: it is never found again. */
  readonly retired: number
  /** 1: V2 serves it; 0: V3. */
  readonly on_v2: number
  /** 1 while neither V3 nor V2 has accepted the credentials that it came with. */
  readonly newcomer: number
  /** The batches that it retires once they are accepted: numbers in a JSON array. */
  readonly retires: string
  /** Of its request, before it is compressed, with some for each record; 0: it is deleted. */
  readonly bytes: number
  /** The instance that asks for it, since it can finish it. */
  readonly asked_by: number | null
}

interface RecordTable {
  readonly batch: number
  readonly position: number
  /** The salted hash of the key. */
  readonly key: string
  /** A code of `lifecycle.ts`. */
  readonly state: number
  /** 1 while it is open, due, or may be sent again: only then it is in the index of keys. */
  readonly active: number
  /** Null: never. -1: with the same batch. Otherwise when it is due. While open: what it was before. */
  readonly retry: number | null
  readonly reason: string | null
  readonly attempts: number
  readonly superseded: number
  readonly dead_letter: number
  readonly settled_ms: number | null
  /** Of a confirmed record: the mark of the service (known-marks.ts). */
  readonly mark: string | null
}

interface SealedTable {
  readonly batch: number
  /** The key that `body` is encrypted with; null: it is not. */
  readonly key_id: string | null
  readonly body: Uint8Array
}

/** When calls with one key may leave, over all instances. */
interface RateSlotTable {
  /** Hash of the key, salted. */
  readonly name: string
  /** The latest slots that were reserved, oldest first: times in a JSON array. */
  readonly slots: string
  readonly paused_until: number
  /** From then on the slots hold no call back. */
  readonly idle_from: number
}

/** The tables of stages (src/rollout/store) and of what comparison has seen (src/rollout/evidence). Times are milliseconds since the epoch by the clock of the database. */
interface RolloutTables {
  readonly rollout_stages: StageTable
  readonly rollout_audit: AuditTable
  readonly rollout_head: HeadTable
  readonly rollout_acks: AcknowledgementTable
  /** When an instance last relayed a batch to V2 that the journal does not know. */
  readonly rollout_unrecorded: { readonly partner: string; readonly at_ms: number }
  readonly rollout_evidence: { readonly name: string; readonly text: string }
  readonly evidence_periods: PeriodTable
  readonly evidence_hashes: HashTable
  /** Counts of a period by name. */
  readonly evidence_counts: { readonly period: number; readonly name: string; readonly count: number }
}

/** Up to 90 days of what was seen of a partner and compared at one revision of its stage. */
interface PeriodTable {
  readonly id: Generated<number>
  readonly partner: string
  readonly stage: string
  readonly revision: number
  /** 1, 2, 3, … */
  readonly period: number
  readonly since_ms: number
  readonly last_ms: number
  /** The days of records that it counts: from the first on, before the second. Together the periods count each day once. */
  readonly from_day: string
  readonly until_day: string
  /** Null: it was destroyed, and the hashes with it. */
  readonly hash_key: Uint8Array | null
  /** 1: `hash_key` is sealed. */
  readonly sealed: Generated<number>
  /** What the hashes added up to when they were deleted; JSON. */
  readonly kept: string | null
}

/** A learner and day or a request that was compared, or a record that was written, as a hash under the key of its period. */
interface HashTable {
  readonly period: number
  readonly hash: Uint8Array
  /** Null for a request. */
  readonly school: Uint8Array | null
  /** Bits of the checks that it went through or the side that it was written on, and of checks in which it differed. */
  readonly checks: number
  readonly differs: number
}

/** The stage of one partner. */
interface StageTable {
  readonly partner: string
  /** JSON of `KeptStage` (src/rollout/store/stage-rows.ts). */
  readonly content: string
  /** Over all others. */
  readonly mac: string
}

/** One change; rows are only added. */
interface AuditTable {
  /** 1, 2, 3, …, without gaps. */
  readonly entry: number
  readonly partner: string
  readonly action: string
  /** What else an `AuditEntry` has (src/rollout/store/audit-trail.ts); JSON. */
  readonly content: string
  /** Over the mac of the row before and all others. */
  readonly mac: string
}

/** The one row with the end of the audit trail; each change of a stage locks it. */
interface HeadTable {
  readonly id: number
  readonly entries: number
  readonly last_mac: string
  /** The first row of the trail whose mac needs a key of the journal; null: none. */
  readonly keyed_from: number | null
  /** How many rows `rollout_stages` has. */
  readonly partners: number
  /** When the trail was last continued from rows that did not fit its end; null: never. */
  readonly repaired_ms: number | null
  readonly mac: string
}

/** What an instance has last said of a partner. */
interface AcknowledgementTable {
  readonly instance: number
  readonly partner: string
  readonly revision: number
  readonly pending_revision: number | null
  readonly writes_v2: number
  readonly writes_v3: number
}
