import { beginSetting } from '../begin-setting.ts'
import type { StagedPartner } from '../live-stages.ts'
import { lowered } from '../lowered.ts'
import { judgeStep } from '../steps.ts'
import type { Change, RolloutSnapshot } from '../store/rollout-store.ts'
import { toSetting } from '../store/stage-row.ts'

/** The name under which the configuration file acts in the audit trail. */
const FILE_NAME = 'file'

/**
 * The change that takes a partner back in the store, where the file has it lower than the store: by its override, or by a stage below the
 * one at which it began. So all instances follow, and what V2 serves meanwhile is behind the usual steps forward once the override is gone.
 * Undefined: there is nothing to change.
 */
export function stepBackOf(
  { id, fileStage }: StagedPartner,
  { trail, partners, begins, damaged }: Pick<RolloutSnapshot, 'trail' | 'partners' | 'begins' | 'damaged'>,
): Change | undefined {
  const first = begins.get(id)
  // To repair it is for an operator, or for a guard.
  if (damaged.has(id) || trail === undefined) return undefined
  const state = partners.get(id)?.state
  const from = toSetting(state ?? first ?? fileStage)
  const to = toSetting(lowered(state ?? beginSetting(fileStage, first), fileStage))
  if (judgeStep(from, to, { journalIsDurable: true }).direction !== 'back') return undefined
  const reason = fileStage.override === to.stage ? 'stageOverride' : 'stage'
  return {
    partner: id,
    expectedRevision: state?.revision ?? 0,
    from,
    to,
    by: FILE_NAME,
    reason: `${reason} of the configuration file`,
  }
}
