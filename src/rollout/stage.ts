import * as z from 'zod'

/** The stages of a partner on its way from V2 to V3, in the order of the steps (product contract 6). */
export const stages = ['legacy', 'shadow', 'canary', 'v3', 'complete'] as const
export type Stage = (typeof stages)[number]

export type Side = 'v2' | 'v3'

/** The kinds of request that a stage distinguishes. `otherV2` is a V2 path that the adapter does not translate. */
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

export const settingSchema = z.object({
  stage: z.enum(stages),
  /** The share of the units that V3 serves at `canary`, from 0 to 100. */
  percent: z.number(),
  /** The units that V3 serves at `canary` at every percentage. */
  always: z.array(z.string()).readonly(),
  /** The units that V2 serves at `canary` at every percentage, even if `always` lists them too. */
  never: z.array(z.string()).readonly(),
})

export type StageSetting = Readonly<z.infer<typeof settingSchema>>

export interface StepOptions {
  readonly percent?: number | undefined
  readonly always?: readonly string[] | undefined
  readonly never?: readonly string[] | undefined
  /** Takes a step forward even within the hour after a guard acted (cool-down). */
  readonly despiteHold?: boolean
  /** Takes a step forward although the advice is not `ready`. */
  readonly despiteAdvice?: boolean
  /** Restarts the evidence for the next step, at the partner's present stage. */
  readonly restartEvidence?: boolean
  /** Reports what `set` or `back` would do, and changes nothing. */
  readonly dryRun?: boolean
  readonly reason?: string
}

export type Step = StepOptions &
  ({ readonly kind: 'set'; readonly stage: Stage } | { readonly kind: 'back' | 'approve' })

/** Maximum length of the reason for a step, in characters. */
export const MAX_REASON = 500

/** The rule of `parseUnits`, as a sentence for messages. */
export const unitRule = 'Units are names of 1 to 255 characters with commas between them.'

/** Parses a list of units. Returns an empty list for an empty text, or `undefined` if a name breaks the rule. */
export function parseUnits(text: string): readonly string[] | undefined {
  if (text.trim() === '') return []
  const units = text.split(',').map((unit) => unit.trim())
  return units.some((unit) => unit === '' || unit.length > 255) ? undefined : [...new Set(units)]
}

export function orderOf(stage: Stage): number {
  return stages.indexOf(stage)
}

export function isServedByV2(stage: Stage): boolean {
  return stage === 'legacy' || stage === 'shadow'
}

export function percentOnV3({ stage, percent }: Pick<StageSetting, 'stage' | 'percent'>): number {
  if (stage === 'canary') return percent
  return isServedByV2(stage) ? 0 : 100
}

export function isWriteKind(kind: RequestKind): kind is 'batch' | 'record' {
  return kind === 'batch' || kind === 'record'
}

export function toSetting({ stage, percent, always, never }: StageSetting): StageSetting {
  return { stage, percent, always, never }
}

export function formatSetting(setting: StageSetting): string {
  return JSON.stringify(toSetting(setting))
}

/** Parses a stored JSON text. Returns `undefined` if the text does not match the schema, for example because another version wrote it. */
export function parseStored<Value>(schema: z.ZodType<Value>, text: string): Value | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export function isSetting(value: unknown): value is StageSetting {
  return settingSchema.safeParse(value).success
}

/**
 * The direction of a change. `forward`: to a later stage, or any unit moves to V3. `back`: to an earlier stage, or units move only to V2.
 * `none`: no unit moves.
 */
type Direction = 'forward' | 'back' | 'none'

export function nextOf(stage: Stage): Stage | undefined {
  return stages[orderOf(stage) + 1]
}

/** Returns the stage that `back` leads to, at which V2 serves all units. */
export function backOf(stage: Stage): Stage {
  return orderOf(stage) > orderOf('shadow') ? 'shadow' : 'legacy'
}

/** Judges a change of a setting. A step forward leads to the next stage, a step back to any lower stage. `error` says why the change is refused. */
export function judgeStep(
  from: StageSetting,
  to: StageSetting,
): { readonly direction: Direction; readonly error?: string } {
  const direction = directionOf(from, to)
  if (!(to.percent >= 0 && to.percent <= 100))
    return {
      direction,
      error: 'The percentage must be between 0 and 100. No stage was changed. Choose another percentage.',
    }
  const next = nextOf(from.stage)
  if (orderOf(to.stage) <= orderOf(from.stage) || to.stage === next) return { direction }
  const error = `A partner moves forward one stage at a time, and ${to.stage} does not follow ${from.stage}. No stage was changed. Choose the next stage.`
  return { direction, error }
}

function directionOf(from: StageSetting, to: StageSetting): Direction {
  const places = orderOf(to.stage) - orderOf(from.stage)
  if (places !== 0) return places > 0 ? 'forward' : 'back'
  if (to.stage !== 'canary') return 'none'
  if (to.percent > from.percent || gains(from.always, to.always) || gains(to.never, from.never))
    return 'forward'
  if (to.percent < from.percent || gains(to.always, from.always) || gains(from.never, to.never)) return 'back'
  return 'none'
}

const gains = (from: readonly string[], to: readonly string[]): boolean =>
  to.some((unit) => !from.includes(unit))
