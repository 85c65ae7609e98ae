import { decide } from './decide.ts'
import type { LiveStages } from './live-stages.ts'
import { lowered } from './lowered.ts'
import { positionOf } from './unit-position.ts'

const nothing = (): void => undefined

/**
 * The stages of the configuration file alone, for an adapter without a journal: nothing is kept of a write that V2 serves, so only stages
 * are allowed that serve all units on one side.
 */
export function createFileStages(secret: () => Uint8Array): LiveStages {
  return {
    enter: ({ id, fileStage }, { kind, unit }) => {
      const setting = lowered(fileStage, fileStage)
      const position = setting.stage === 'canary' ? positionOf(secret(), id, unit) : 0
      const side = decide(setting, kind, { name: unit, position })
      return {
        side,
        stage: setting.stage,
        revision: 0,
        known: 'nothing',
        isCurrent: () => true,
        isStoreAnswering: () => false,
        leave: nothing,
      }
    },
  }
}
