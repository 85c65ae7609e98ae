import type { Config, PartnerConfig } from '../config/index.ts'
import type { FileStage } from '../rollout/index.ts'

/**
 * The stage at which a partner begins that the store of stages does not know. Where a step forward takes two people, that is `legacy`:
 * writing another stage into the file would be a step that one person takes.
 */
export function toFileStage(
  { stage, stageOverride, canary }: PartnerConfig,
  { approval }: Pick<Config['rollout'], 'approval'>,
): FileStage {
  return {
    stage: approval === 'two' ? 'legacy' : stage,
    override: stageOverride,
    percent: canary.percent,
    always: canary.always,
    never: canary.never,
  }
}
