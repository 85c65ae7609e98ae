import { placeOf, type Stage, type StageSetting, stages } from './stage.ts'

/** Which way a change moves units. `forward`: at least one to V3; `none`: it moves none. */
export type Direction = 'forward' | 'back' | 'none'

/** The judgement of a change. */
export interface JudgedStep {
  readonly direction: Direction
  /** Why the change is refused, for the operator; undefined: it is allowed. */
  readonly error?: string
}

/** Without a journal nothing is kept of a write that V2 serves, so no unit may change sides by itself. */
const withoutJournal: readonly Stage[] = ['legacy', 'v3', 'complete']

/** The stage after a stage; undefined: it is the last one. */
export function nextOf(stage: Stage, journalIsDurable = true): Stage | undefined {
  const allowed = journalIsDurable ? stages : withoutJournal
  return allowed.find((one) => placeOf(one) > placeOf(stage))
}

/** Where `back` leads from a stage: V2 serves all units there. */
export function backOf(stage: Stage): Stage {
  return placeOf(stage) > placeOf('shadow') ? 'shadow' : 'legacy'
}

/** Judges a change of a setting; pure. Forward goes one stage at a time; back goes to any lower stage. */
export function judgeStep(
  from: StageSetting,
  to: StageSetting,
  { journalIsDurable }: { readonly journalIsDurable: boolean },
): JudgedStep {
  const direction = directionOf(from, to)
  const error = faultOf(from, to, journalIsDurable)
  return error === undefined ? { direction } : { direction, error }
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

function faultOf(from: StageSetting, to: StageSetting, journalIsDurable: boolean): string | undefined {
  if (!(to.percent >= 0 && to.percent <= 100)) return 'The percentage must be between 0 and 100.'
  if (!journalIsDurable && !withoutJournal.includes(to.stage)) {
    return `The stage ${to.stage} needs a journal: without one only ${withoutJournal.join(', ')} are possible.`
  }
  if (placeOf(to.stage) <= placeOf(from.stage)) return undefined
  const next = nextOf(from.stage, journalIsDurable)
  if (to.stage === next) return undefined
  return `Forward goes one stage at a time: after ${from.stage} comes ${next ?? 'nothing'}, not ${to.stage}.`
}
