import type { Generated } from 'kysely'

/** The tables of stages (src/rollout/store) and of what comparison has seen (src/rollout/evidence). Times are milliseconds since the epoch by the clock of the database. */
export interface RolloutTables {
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
  readonly revision: number
  /** The highest revision that was ever given out, also for a change that was withdrawn. */
  readonly last_revision: number
  /** Stage, percent and lists; JSON. */
  readonly setting: string
  readonly since_ms: number
  readonly operator: string
  readonly reason: string
  /** A change that is not committed yet; JSON. */
  readonly pending: string | null
  /** The last row of the audit trail about this partner. */
  readonly entry: number
  /** Over all others. */
  readonly mac: string
}

/** One change; rows are only added. */
interface AuditTable {
  /** 1, 2, 3, …, without gaps. */
  readonly entry: number
  readonly at_ms: number
  readonly operator: string
  readonly partner: string
  readonly action: string
  /** JSON, as `setting` above. */
  readonly setting_from: string | null
  readonly setting_to: string | null
  readonly revision: number
  readonly reason: string
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
