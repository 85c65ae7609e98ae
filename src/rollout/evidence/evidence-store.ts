import type { JournalDatabase } from '../../journal/index.ts'
import { addEntries, type EvidenceEntry } from './add-entries.ts'
import { destroyPeriods, openPeriod, type PeriodKey } from './periods.ts'
import { type EvidenceScope, type KeptEvidence, readKept } from './read-kept.ts'

/**
 * Keeps what was seen of a partner and compared, over all instances, as counts and keyed hashes: no id, name or value. Errors:
 * `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`.
 */
export interface EvidenceStore {
  /** The key of the running period of a scope; a new one begins where there is none, or after 90 days. */
  key(scope: EvidenceScope): Promise<PeriodKey>
  /** Adds entries, all or none. False: the period has ended meanwhile, and nothing was added. */
  add(period: number, entries: readonly EvidenceEntry[]): Promise<boolean>
  /** The evidence of a partner, the newest revision first. */
  read(partner: string): Promise<readonly KeptEvidence[]>
  /** Destroys keys that are older than 90 days, and deletes their hashes; returns how many. */
  destroyExpired(): Promise<number>
}

/** Creates the store of evidence in the database of a journal. */
export function createEvidenceStore(database: JournalDatabase): EvidenceStore {
  return {
    key: (scope) => database.ask(() => openPeriod(database, scope)),
    add: (period, entries) => database.ask(() => addEntries(database, period, entries)),
    read: (partner) => database.ask(() => readKept(database, partner)),
    destroyExpired: () => database.ask(() => destroyPeriods(database)),
  }
}
