import type { StageSetting } from './stage.ts'
import { judgeStep } from './steps.ts'

/**
 * The setting of a partner whose stage was never changed in the store: that of the file, unless it moves a unit to V3 that V2 served at
 * `first`, where the partner first began. Editing the file is not a step forward, since nothing drains then. `first` is undefined for a
 * partner that has not begun.
 */
export function beginSetting<Setting extends StageSetting>(
  file: Setting,
  first: StageSetting | undefined,
): Setting | StageSetting {
  if (first === undefined) return file
  return judgeStep(first, file, { journalIsDurable: true }).direction === 'forward' ? first : file
}
