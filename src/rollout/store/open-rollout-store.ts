import { type DatabaseOptions, openJournalDatabase } from '../../journal/index.ts'
import { createEvidenceStore } from '../evidence/create-evidence-store.ts'
import type { EvidenceStore } from '../evidence/evidence-store.ts'
import { createRolloutStore } from './create-rollout-store.ts'
import type { RolloutStore } from './rollout-store.ts'

/** A store that was opened by itself. */
export interface OpenedRolloutStore extends RolloutStore {
  /** What comparison has seen, in the same database. */
  readonly evidence: EvidenceStore
  close(): Promise<void>
}

/** Opens the store of a journal that is there, also while it is served. Errors: those of `openJournalDatabase`. */
export async function openRolloutStore(options: DatabaseOptions): Promise<OpenedRolloutStore> {
  const database = await openJournalDatabase(options)
  return {
    ...createRolloutStore(database),
    evidence: createEvidenceStore(database),
    close: () => database.close(),
  }
}
