import { beginSetting } from '../begin-setting.ts'
import { placeOf, type StageSetting } from '../stage.ts'
import { backOf } from '../steps.ts'
import type { RolloutStore } from '../store/rollout-store.ts'

/** The name under which guards act in the audit trail. */
export const GUARD_NAME = 'guard'

/** Why a guard takes a partner back. */
export interface GuardReason {
  readonly partner: string
  /** The revision of the stage that the alarm is about; 0: that of the file. */
  readonly revision: number
  /** The stage of the file, for a partner that the store does not know. */
  readonly fileStage: StageSetting | undefined
  readonly reason: string
}

/**
 * `gone`: V3 does not serve the partner any longer, or the store does not know its stage; `changed`: V3 serves it by a later stage or share
 * than the alarm is about, which an operator has chosen since.
 */
export type WentBack = 'applied' | 'gone' | 'changed'

/** A change that came between the reading and the writing is read the second time. */
const ATTEMPTS = 2

/** Takes a partner back from V3, as an operator does, by a compare-and-set on the revision of the alarm. Errors: those of the store. */
export async function goBack(
  store: Pick<RolloutStore, 'snapshot' | 'apply'>,
  { partner, revision, fileStage, reason }: GuardReason,
): Promise<WentBack> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { partners, begins, damaged } = await store.snapshot()
    const known = partners.get(partner)?.state
    const from = known ?? (fileStage && beginSetting(fileStage, begins.get(partner)))
    if (damaged.has(partner) || from === undefined || placeOf(from.stage) < placeOf('canary')) return 'gone'
    if ((known?.revision ?? 0) !== revision) return 'changed'
    const { stage, percent, always, never } = from
    const applied = await store.apply(
      {
        partner,
        expectedRevision: revision,
        from: { stage, percent, always, never },
        to: { stage: backOf(stage), percent, always, never },
        by: GUARD_NAME,
        reason,
      },
      'guard',
    )
    if (applied.kind === 'applied') return 'applied'
  }
  return 'changed'
}
