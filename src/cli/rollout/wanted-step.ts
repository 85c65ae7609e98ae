import type { Config } from '../../config/index.ts'
import { lowered } from '../../rollout/lowered.ts'
import { placeOf, type Stage, type StageSetting } from '../../rollout/stage.ts'
import type { ChangeResult } from './change-result.ts'
import type { RolloutTarget } from './open-target.ts'
import type { StageView } from './stage-view.ts'

/** The flags of `rollout set` that say where a partner is to go. */
export interface WantedStep {
  readonly stage: Stage
  readonly percent?: number
  readonly always?: readonly string[]
  readonly never?: readonly string[]
}

/**
 * The setting that is wanted. Within `canary` what no flag names stays; a partner that enters it again gets the share of the file, not the
 * one that it had.
 */
export function targetOf(
  { stored, file }: StageView,
  { stage, percent, always, never }: WantedStep,
): StageSetting {
  const { canary } = file?.own ?? {}
  const before = stored?.stage === 'canary' || stage !== 'canary' ? stored?.percent : canary?.percent
  return {
    stage,
    percent: percent ?? before ?? 0,
    always: always ?? stored?.always ?? canary?.always ?? [],
    never: never ?? stored?.never ?? canary?.never ?? [],
  }
}

/** True where nothing is left to do: the journal has this very setting, and no change is pending. */
export function isSameSetting({ stored, storedIn, pending }: StageView, to: StageSetting): boolean {
  if (storedIn === 'file' || pending !== undefined || stored?.stage !== to.stage) return false
  return to.stage !== 'canary' || keyOf(stored) === keyOf(to)
}

const keyOf = ({ percent, always, never }: StageSetting): string =>
  JSON.stringify([percent, always.toSorted(), never.toSorted()])

/** True where units of V2 go to V3, which may not have answered what their clients send again. */
export function movesToV3(from: Pick<StageSetting, 'stage'>, to: Pick<StageSetting, 'stage'>): boolean {
  return placeOf(to.stage) >= placeOf('canary') && placeOf(from.stage) <= placeOf('canary')
}

/** What the operator should know about a change that was made. */
export function warningsOf(
  { file }: StageView,
  { partner, to }: ChangeResult,
  { upstreams }: Pick<Config, 'upstreams'>,
  { config: path }: RolloutTarget,
): readonly string[] {
  if (to === undefined || file === undefined) return []
  const serves = lowered(to, file.fileStage)
  const hasV2 = (file.own.v2.baseUrl ?? upstreams.v2?.baseUrl) !== undefined
  return [
    ...(serves.stage === to.stage
      ? []
      : [`warning: partners[].stageOverride of the file still lowers ${partner} to ${serves.stage}.`]),
    // Without a file the address is a flag of serve.
    ...(path !== undefined && !hasV2 && placeOf(serves.stage) <= placeOf('canary')
      ? [
          `warning: V2 serves ${partner} at ${serves.stage}, and ${path} has no address of V2: requests get 503. Set upstreams.v2.baseUrl.`,
        ]
      : []),
  ]
}
