import { decide } from '../decide.ts'
import type { StagedRequest } from '../live-stages.ts'
import type { Side, StageSetting } from '../stage.ts'
import { stageTable } from '../stage-table.ts'
import { positionOf } from '../unit-position.ts'

/** The side of a request at a setting; undefined: it is that of its unit, and the place of units is not known. */
export type SideOf = (setting: StageSetting, partner: string, request: StagedRequest) => Side | undefined

/** Creates the decision over units by name. `secret` gives their places; without the journal there is none. */
export function createSideOf(secret: () => Uint8Array | undefined): SideOf {
  return (setting, partner, { kind, unit }) => {
    if (stageTable[setting.stage][kind].serves !== 'unit')
      return decide(setting, kind, { name: unit, position: 0 })
    const key = secret()
    return key && decide(setting, kind, { name: unit, position: positionOf(key, partner, unit) })
  }
}
