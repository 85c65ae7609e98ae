import type { RequestKind, Side, StageSetting } from './stage.ts'
import { stageTable } from './stage-table.ts'

/** The unit that stays on one side at `canary`: a school, or the owner where requests name none. */
export interface Unit {
  readonly name: string
  /** Its place among all units, 0 up to 1: `positionOf`. */
  readonly position: number
}

/**
 * Decides which side serves a request; pure. A share moves units in the order of their positions: raising it moves none back to V2, and
 * lowering it moves those first that came last.
 */
export function decide(setting: StageSetting, kind: RequestKind, unit: Unit): Side {
  const { serves } = stageTable[setting.stage][kind]
  return serves === 'unit' ? sideOfUnit(setting, unit) : serves
}

function sideOfUnit({ percent, always, never }: StageSetting, { name, position }: Unit): Side {
  if (never.includes(name)) return 'v2'
  return always.includes(name) || position * 100 < percent ? 'v3' : 'v2'
}
