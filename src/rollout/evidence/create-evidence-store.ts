import type { JournalDatabase } from '../../journal/index.ts'
import { addEntries } from './add-entries.ts'
import { destroyPeriods } from './destroy-periods.ts'
import type { EvidenceStore } from './evidence-store.ts'
import { openPeriod } from './open-period.ts'
import { readKept } from './read-kept.ts'

/** Creates the store of evidence in the database of a journal. */
export function createEvidenceStore(database: JournalDatabase): EvidenceStore {
  return {
    key: (scope) => database.ask(() => openPeriod(database, scope)),
    add: ({ period }, entries) => database.ask(() => addEntries(database, period, entries)),
    read: (partner) => database.ask(() => readKept(database, partner)),
    destroyExpired: () => database.ask(() => destroyPeriods(database)),
  }
}
