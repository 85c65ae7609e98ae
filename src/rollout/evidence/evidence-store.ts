import type { Stage } from '../stage.ts'

/** What evidence belongs to: another revision of the stage begins anew. */
export interface EvidenceScope {
  readonly partner: string
  readonly stage: Stage
  readonly revision: number
}

/** The key of a period as plain values, for as long as it is kept. */
export interface PeriodKey {
  readonly period: number
  /** Today by the clock of the database, `YYYY-MM-DD`. */
  readonly today: string
  /** The days that the period counts records of, `YYYY-MM-DD`: from the first on, up to but not including the second. */
  readonly days: readonly [from: string, until: string]
  readonly secret: Uint8Array
}

/** The key of a period, and what it is used for. */
export interface EvidenceKey extends PeriodKey {
  /** 16 bytes that say nothing about the text without the key. Texts of different kinds never have the same hash. */
  hash(kind: 'pair' | 'request' | 'school', text: string): Uint8Array
  /** Whether this period counts records of a day, `YYYY-MM-DD`; each day is of one period. */
  covers(day: string): boolean
}

/** A learner and day that was compared. */
export interface HashedPair {
  readonly hash: Uint8Array
  readonly school: Uint8Array
  /** Bits, one for each kind of check. */
  readonly checks: number
  readonly differs: number
}

/** What one exchange adds. */
export interface EvidenceEntry {
  /** Its counts count once for each hash. Undefined: they always count. */
  readonly request: Uint8Array | undefined
  /** By names without anything of a record, such as `verdict batch reply same`. */
  readonly counts: ReadonlyMap<string, number>
  readonly pairs: readonly HashedPair[]
}

/** What the pairs of one period add up to. */
export interface PairCounts {
  /** Pairs that differed in any check. */
  readonly differing: number
  /** For each bit of `checks`, how many of the pairs that went through it each school has, largest first. */
  readonly schools: readonly (readonly number[])[]
}

/** All evidence of one scope. */
export interface KeptEvidence {
  readonly scope: EvidenceScope
  /** When the first and the last of it came; milliseconds since the epoch by the clock of the database. */
  readonly sinceMs: number
  readonly lastMs: number
  readonly counts: ReadonlyMap<string, number>
  readonly periods: readonly PairCounts[]
  /** True: a period has as many pairs as are kept, and counts no more. */
  readonly full: boolean
  /** True: rows are not as they were written; what they said is left out. */
  readonly damaged: boolean
}

/**
 * Keeps what comparison has seen, over all instances; no id, name or value. Errors: `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`.
 */
export interface EvidenceStore {
  /** The key of the running period of a scope; a new one begins where there is none, or after 90 days. */
  key(scope: EvidenceScope): Promise<EvidenceKey>
  /** Adds entries, all or none. False: the period has ended meanwhile, and nothing was added. */
  add(key: Pick<EvidenceKey, 'period'>, entries: readonly EvidenceEntry[]): Promise<boolean>
  /** The evidence of a partner, the newest revision first. */
  read(partner: string): Promise<readonly KeptEvidence[]>
  /** Destroys keys that are older than 90 days, and deletes their hashes; returns how many. */
  destroyExpired(): Promise<number>
}

/** Pairs that are kept in one period; beyond that only those that differ, so that a full period never hides a difference. */
export const MAX_PAIRS = 50_000
/** Names of counts of each group that are kept in one period; the group is the name up to the first space. */
export const MAX_NAMES = 2_500
/** Bits of `checks`. */
export const CHECK_BITS = 4
