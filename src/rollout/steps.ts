import { placeOf, type Stage, type StageSetting, stages } from './stage.ts'

/** Which way a change moves units. `forward`: at least one to V3; `none`: it moves none. */
type Direction = 'forward' | 'back' | 'none'

/** The judgement of a change. */
interface JudgedStep {
  readonly direction: Direction
  /** Why the change is refused, for the operator; undefined: it is allowed. */
  readonly error?: string
}

/** The stage after a stage; undefined: it is the last one. */
export function nextOf(stage: Stage): Stage | undefined {
  return stages[placeOf(stage) + 1]
}

/** Where `back` leads from a stage: V2 serves all units there. */
export function backOf(stage: Stage): Stage {
  return placeOf(stage) > placeOf('shadow') ? 'shadow' : 'legacy'
}

/** Judges a change of a setting; pure. Forward goes one stage at a time; back goes to any lower stage. */
export function judgeStep(from: StageSetting, to: StageSetting): JudgedStep {
  const direction = directionOf(from, to)
  if (!(to.percent >= 0 && to.percent <= 100))
    return { direction, error: 'The percentage must be between 0 and 100.' }
  const next = nextOf(from.stage)
  if (placeOf(to.stage) <= placeOf(from.stage) || to.stage === next) return { direction }
  const error = `Forward goes one stage at a time: after ${from.stage} comes ${next ?? 'nothing'}, not ${to.stage}.`
  return { direction, error }
}

function directionOf(from: StageSetting, to: StageSetting): Direction {
  const places = placeOf(to.stage) - placeOf(from.stage)
  if (places !== 0) return places > 0 ? 'forward' : 'back'
  if (to.stage !== 'canary') return 'none'
  if (to.percent > from.percent || gains(from.always, to.always) || gains(to.never, from.never))
    return 'forward'
  if (to.percent < from.percent || gains(to.always, from.always) || gains(from.never, to.never)) return 'back'
  return 'none'
}

/** True where `to` has a unit that `from` has not. */
const gains = (from: readonly string[], to: readonly string[]): boolean =>
  to.some((unit) => !from.includes(unit))

/**
 * The setting of a partner whose stage was never changed in the store: that of the file, unless it moves a unit to V3 that V2 served at
 * `first`, where the partner first began. Editing the file is not a step forward, since nothing drains then. `first` is undefined for a
 * partner that has not begun.
 */
export function beginSetting<Setting extends StageSetting>(
  file: Setting,
  first: StageSetting | undefined,
): Setting | StageSetting {
  return first !== undefined && judgeStep(first, file).direction === 'forward' ? first : file
}
