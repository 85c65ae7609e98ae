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

/** The stages by their place on the way. */
export function placeOf(stage: Stage): number {
  return stages.indexOf(stage)
}

/** True for stages at which V2 serves every unit. */
export function isServedByV2(stage: Stage): boolean {
  return stage === 'legacy' || stage === 'shadow'
}

/** True for kinds that change marks. */
export function isWriteKind(kind: RequestKind): boolean {
  return kind === 'batch' || kind === 'record'
}

/** A setting under the override of the file, which may only lower it. */
export function lowered<Setting extends StageSetting>(
  setting: Setting,
  { override }: { readonly override: Stage | undefined },
): Setting {
  if (override === undefined || placeOf(override) >= placeOf(setting.stage)) return setting
  return { ...setting, stage: override }
}

/** The setting without what else the value has. */
export function toSetting({ stage, percent, always, never }: StageSetting): StageSetting {
  return { stage, percent, always, never }
}

/** A setting as it is stored: JSON, without what else the value has. */
export function formatSetting(setting: StageSetting): string {
  return JSON.stringify(toSetting(setting))
}

/** Reads a stored setting; undefined where the text is not one that this version knows. */
export function parseSetting(text: string): StageSetting | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return isSetting(value) ? toSetting(value) : undefined
}

/** True for a setting whose stage this version knows. */
export function isSetting(value: unknown): value is StageSetting {
  if (typeof value !== 'object' || value === null) return false
  const { stage, percent, always, never } = value as Partial<Record<keyof StageSetting, unknown>>
  return stages.some((one) => one === stage) && typeof percent === 'number' && isList(always) && isList(never)
}

const isList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
