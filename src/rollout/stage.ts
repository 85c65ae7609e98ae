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

/** True for kinds that change marks. */
export function isWriteKind(kind: RequestKind): boolean {
  return kind === 'batch' || kind === 'record'
}
