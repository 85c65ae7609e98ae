import { decide } from './decide.ts'
import type { FileStage, LiveStages } from './live-stages.ts'
import { placeOf, type StageSetting } from './stage.ts'
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
      return { side, stage: setting.stage, revision: 0, known: 'nothing', leave: nothing }
    },
  }
}

/** A setting under the override of the file, which may only lower it. */
export function lowered<Setting extends StageSetting>(
  setting: Setting,
  { override }: Pick<FileStage, 'override'>,
): Setting {
  if (override === undefined || placeOf(override) >= placeOf(setting.stage)) return setting
  return { ...setting, stage: override }
}
