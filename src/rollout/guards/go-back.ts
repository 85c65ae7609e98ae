import { beginSetting } from '../begin-setting.ts'
import { placeOf, type StageSetting } from '../stage.ts'
import { backOf } from '../steps.ts'
import type { RolloutStore } from '../store/rollout-store.ts'

/** The name under which guards act in the audit trail. */
export const GUARD_NAME = 'guard'

/** Another change may come in between; each attempt decides by what is stored then. */
const ATTEMPTS = 5

/**
 * Takes a partner back from V3, as an operator does. False where V3 does not serve it any longer, or where the store does not know its
 * stage. Errors: those of the store.
 */
export async function goBack(
  store: Pick<RolloutStore, 'snapshot' | 'apply'>,
  partner: string,
  fileStage: StageSetting | undefined,
  reason: string,
): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { partners, begins, damaged } = await store.snapshot()
    const known = partners.get(partner)?.state
    const from = known ?? (fileStage && beginSetting(fileStage, begins.get(partner)))
    if (damaged.has(partner) || from === undefined || placeOf(from.stage) < placeOf('canary')) return false
    const { stage, percent, always, never } = from
    const applied = await store.apply(
      {
        partner,
        expectedRevision: known?.revision ?? 0,
        from: { stage, percent, always, never },
        to: { stage: backOf(stage), percent, always, never },
        by: GUARD_NAME,
        reason,
      },
      'guard',
    )
    if (applied.kind === 'applied') return true
  }
  return false
}
