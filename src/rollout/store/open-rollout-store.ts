import { type DatabaseOptions, openJournalDatabase } from '../../journal/index.ts'
import { createEvidenceStore } from '../evidence/create-evidence-store.ts'
import type { EvidenceStore } from '../evidence/evidence-store.ts'
import { createRolloutStore } from './create-rollout-store.ts'
import type { KnownTrail, RolloutStore } from './rollout-store.ts'

/** A store that was opened by itself. */
export interface OpenedRolloutStore extends RolloutStore {
  /** What comparison has seen, in the same database. */
  readonly evidence: EvidenceStore
  close(): Promise<void>
}

/**
 * Opens the store of a journal that is there, also while it is served. Its trail has to go on from `known`. Errors: those of
 * `openJournalDatabase`.
 */
export async function openRolloutStore(
  options: DatabaseOptions,
  known?: KnownTrail,
): Promise<OpenedRolloutStore> {
  const database = await openJournalDatabase(options)
  const store = createRolloutStore(database)
  return {
    ...store,
    snapshot: () => store.snapshot(known),
    verify: () => store.verify(known),
    evidence: createEvidenceStore(database),
    close: () => database.close(),
  }
}
