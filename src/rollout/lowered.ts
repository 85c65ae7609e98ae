import type { FileStage } from './live-stages.ts'
import { placeOf, type StageSetting } from './stage.ts'

/** A setting under the override of the file, which may only lower it. */
export function lowered<Setting extends StageSetting>(
  setting: Setting,
  { override }: Pick<FileStage, 'override'>,
): Setting {
  if (override === undefined || placeOf(override) >= placeOf(setting.stage)) return setting
  return { ...setting, stage: override }
}
