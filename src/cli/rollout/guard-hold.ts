import { coolDownOf, type GuardSettings } from '../../rollout/guards/judge.ts'
import { GUARD_NAME } from '../../rollout/guards/go-back.ts'
import { readEvidence } from '../../rollout/guards/live-guards.ts'
import type { RolloutStore } from '../../rollout/store/rollout-store.ts'

/** A guard holds a partner where it is. */
export interface GuardHold {
  readonly untilMs: number
  /** What it has found, as a sentence. */
  readonly finding: string
}

/** Rows of the audit trail among which that of the hold is looked for. */
const ROWS = 200

/** The hold of a guard that speaks against a step forward; undefined: there is none, or its cool-down is over. */
export async function readGuardHold(
  store: Pick<RolloutStore, 'readEvidence' | 'history'>,
  partner: string,
  settings: GuardSettings,
  nowMs: number,
): Promise<GuardHold | undefined> {
  const act = coolDownOf(await readEvidence(store, partner), settings, nowMs)
  if (act?.action !== 'hold') return undefined
  const rows = await store.history({ partner, limit: ROWS })
  const row = rows.findLast(({ action, by }) => action === 'hold' && by === GUARD_NAME)
  const about = act.unit === undefined ? '' : `, unit ${act.unit}`
  return { untilMs: act.untilMs, finding: row?.reason ?? `V3 is worse (${act.kind}${about}).` }
}
