import type { JournalDatabase } from '../../journal/index.ts'
import type { Head } from './change-transaction.ts'
import { type KeptStage, toStageRow } from './stage-row.ts'

/** What no MAC ever is. */
const DAMAGED = 'damaged'

/** What an instance knows better. */
export interface FoundDamage {
  /** Undefined: the end of the trail is well. */
  readonly head: Head | undefined
  /** Stages that are older than they were; undefined: the row is gone. */
  readonly stages: readonly { readonly partner: string; readonly kept: KeptStage | undefined }[]
}

/**
 * Marks an end of the trail and stages that cannot be, so that all others see what this instance alone knows. Nothing that was written
 * since it has read them is marked. Without keys everybody can write an end that fits, so nothing is gained by it.
 */
export async function markDamaged(
  { db, macKey }: JournalDatabase,
  { head, stages }: FoundDamage,
): Promise<void> {
  if (!macKey.keyed) return
  if (head !== undefined && head.mac !== DAMAGED) {
    await macKey.restore(db)
    await db.updateTable('rollout_head').set({ mac: DAMAGED }).where('mac', '=', head.mac).execute()
  }
  for (const { partner, kept } of stages) {
    if (kept === undefined) {
      await db
        .insertInto('rollout_stages')
        .values({ partner, ...noStage })
        .onConflict((conflict) => conflict.column('partner').doNothing())
        .execute()
      continue
    }
    const { mac } = toStageRow(macKey.key, kept)
    await db
      .updateTable('rollout_stages')
      .set({ mac: DAMAGED })
      .where('partner', '=', partner)
      .where('mac', '=', mac)
      .execute()
  }
}

const noStage = {
  revision: 0,
  last_revision: 0,
  setting: '',
  since_ms: 0,
  operator: '',
  reason: '',
  pending: null,
  entry: 0,
  mac: DAMAGED,
}
