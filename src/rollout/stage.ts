import * as z from 'zod'

/** How far a partner has moved from V2 to V3, in the order of the way (product contract 6). */
export const stages = ['legacy', 'shadow', 'canary', 'v3', 'complete'] as const
export type Stage = (typeof stages)[number]

/** The service that a request goes to. */
export type Side = 'v2' | 'v3'

/** The kinds of request that a stage tells apart. `otherV2`: a path of V2 that the adapter does not translate. */
export const requestKinds = [
  'batch',
  'record',
  'readFilter',
  'readKey',
  'documents',
  'registrations',
  'otherV2',
  'v3Path',
] as const
export type RequestKind = (typeof requestKinds)[number]

/** The stage of one partner with what belongs to it. */
export interface StageSetting {
  readonly stage: Stage
  /** Share of the units that V3 serves at `canary`, 0 to 100. */
  readonly percent: number
  /** Units that V3 serves at `canary` whatever the share is. */
  readonly always: readonly string[]
  /** Units that V2 serves at `canary` whatever the share is; wins over `always`. */
  readonly never: readonly string[]
}

/** What `parseUnits` takes. */
export const unitRule = 'Units are names of 1 to 255 characters with commas between them.'

/** The names of units in a text, none for a blank one; undefined where they do not follow the rule. */
export function parseUnits(text: string): readonly string[] | undefined {
  if (text.trim() === '') return []
  const units = text.split(',').map((unit) => unit.trim())
  return units.some((unit) => unit === '' || unit.length > 255) ? undefined : [...new Set(units)]
}

/** The stages by their place on the way. */
export function placeOf(stage: Stage): number {
  return stages.indexOf(stage)
}

/** True for stages at which V2 serves every unit. */
export function isServedByV2(stage: Stage): boolean {
  return stage === 'legacy' || stage === 'shadow'
}

/** The percentage of the units that V3 serves. */
export function shareOf({ stage, percent }: Pick<StageSetting, 'stage' | 'percent'>): number {
  if (stage === 'canary') return percent
  return isServedByV2(stage) ? 0 : 100
}

/** True for kinds that change marks. */
export function isWriteKind(kind: RequestKind): boolean {
  return kind === 'batch' || kind === 'record'
}

/** The setting without what else the value has. */
export function toSetting({ stage, percent, always, never }: StageSetting): StageSetting {
  return { stage, percent, always, never }
}

/** A setting as it is stored: JSON, without what else the value has. */
export function formatSetting(setting: StageSetting): string {
  return JSON.stringify(toSetting(setting))
}

/** A setting as it is stored. */
export const settingSchema = z.object({
  stage: z.enum(stages),
  percent: z.number(),
  always: z.array(z.string()),
  never: z.array(z.string()),
})

/** Reads a text that is stored as JSON; undefined where it is not one that this version knows. */
export function parseStored<Value>(schema: z.ZodType<Value>, text: string): Value | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** True for a setting whose stage this version knows. */
export function isSetting(value: unknown): value is StageSetting {
  return settingSchema.safeParse(value).success
}

/** Which way a change moves units. `forward`: at least one to V3; `none`: it moves none. */
type Direction = 'forward' | 'back' | 'none'

/** The stage after a stage; undefined: it is the last one. */
export function nextOf(stage: Stage): Stage | undefined {
  return stages[placeOf(stage) + 1]
}

/** Where `back` leads from a stage: V2 serves all units there. */
export function backOf(stage: Stage): Stage {
  return placeOf(stage) > placeOf('shadow') ? 'shadow' : 'legacy'
}

/**
 * Judges a change of a setting; pure. Forward goes one stage at a time; back goes to any lower stage. `error` says to the operator why it is refused.
 */
export function judgeStep(
  from: StageSetting,
  to: StageSetting,
): { readonly direction: Direction; readonly error?: string } {
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
