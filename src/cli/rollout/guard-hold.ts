import { GUARD_NAME } from '../../rollout/guards/go-back.ts'
import type { GuardSettings } from '../../rollout/guards/live-guards.ts'
import type { RolloutStore } from '../../rollout/store/rollout-store.ts'

/** A guard has taken a partner back, or holds it where it is. */
export interface GuardHold {
  readonly untilMs: number
  /** What it has found, as a sentence. */
  readonly finding: string
}

/** Rows of the audit trail among which that of the guard is looked for. */
const ROWS = 200

/** The act of a guard that speaks against a step forward; undefined: there is none, or its cool-down is over. */
export async function readGuardHold(
  store: Pick<RolloutStore, 'history'>,
  partner: string,
  { coolDownMs }: Pick<GuardSettings, 'coolDownMs'>,
  nowMs: number,
): Promise<GuardHold | undefined> {
  const rows = await store.history({ partner, limit: ROWS })
  const row = rows.findLast(({ by }) => by === GUARD_NAME)
  if (row === undefined || nowMs >= row.atMs + coolDownMs) return undefined
  return { untilMs: row.atMs + coolDownMs, finding: row.reason }
}
