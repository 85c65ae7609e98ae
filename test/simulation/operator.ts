import { AdapterError } from '../../src/errors.ts'
import { backOf, judgeStep, nextOf, orderOf, type StageSetting, toSetting } from '../../src/rollout/stage.ts'
import { driveForward } from '../../src/rollout/store/drive-change.ts'
import type { Random } from '../../src/sandbox/random.ts'
import { PARTNER, type SimulatedInstance } from './simulated-instance.ts'
import type { World } from './world.ts'

export interface StageHabits {
  /** The stage in the configuration file. */
  readonly fileStage: StageSetting
  /** How long a step forward waits for writes in progress. */
  readonly drainMs: number
  /** `rollout.resendWindowMs` of the configuration. */
  readonly resendWindowMs: number
}

const settingOf = (stage: StageSetting['stage'], percent: number): StageSetting => ({
  ...{ stage, percent },
  always: [],
  never: [],
})

/** Draws the stage settings of a history. `longCallMs` is the longest time from the sending of a write to its arrival at V2. */
export function drawStages(random: Random, longCallMs: number): StageHabits {
  return {
    fileStage: settingOf(
      random.pick(['legacy', 'shadow', 'shadow', 'canary', 'v3']),
      random.pick([0, 50, 100]),
    ),
    // After a short drain, instances may still have writes in progress.
    drainMs: random.pick([100, 500, 2_000, 4_000]),
    resendWindowMs: random.pick([500, 1_500]) + longCallMs,
  }
}

/**
 * An operator who changes the stage with a command in the process of an instance. The command dies with the process and leaves its
 * proposal.
 */
export function createOperator(
  world: World,
  random: Random,
  { fileStage: begin, drainMs, resendWindowMs }: StageHabits,
  onAllOnV3: () => void,
) {
  const drawNext = (from: StageSetting): StageSetting => {
    const isForward = random.chance(0.7)
    if (from.stage === 'canary' && random.chance(0.6))
      return settingOf('canary', random.pick(isForward ? [50, 100] : [50, 0]))
    return settingOf(
      isForward ? (nextOf(from.stage) ?? from.stage) : backOf(from.stage),
      random.pick([0, 50, 100, 100]),
    )
  }
  const change = async ({ rollout, clock, actor }: SimulatedInstance): Promise<void> => {
    const { partners, begins } = await rollout.snapshot()
    const { state, pending } = partners.get(PARTNER) ?? {}
    if (pending !== undefined && random.chance(0.5)) return
    const from = toSetting(state?.revision ? state : (begins.get(PARTNER) ?? begin))
    const to = drawNext(from)
    const wanted = { ...{ partner: PARTNER, from, to }, by: 'operator', reason: 'drawn' }
    const asked = { ...wanted, expectedRevision: state?.revision ?? 0 }
    const isForward = judgeStep(from, to).direction === 'forward'
    world.log(() => `${actor.name}: from ${formatSetting(from)} to ${formatSetting(to)}`)
    const movesToV3 = orderOf(to.stage) >= orderOf('canary') && orderOf(from.stage) <= orderOf('canary')
    const result = isForward
      ? await driveForward(rollout, { ...asked, quietMs: movesToV3 ? resendWindowMs : 0 }, { clock, drainMs })
      : await rollout.apply(asked, 'back')
    world.log(() => `${actor.name}: ${formatSetting(to)} was ${result.kind}`)
    if (result.kind === 'committed' && isAllOnV3(to)) onAllOnV3()
  }
  return {
    change: (instance: SimulatedInstance): Promise<void> =>
      change(instance).catch((cause: unknown) => {
        // The store failed. The next operator sees whether the stage was changed.
        if (!(cause instanceof AdapterError)) throw cause
        world.log(() => `${instance.actor.name}: ${cause.code}`)
      }),
  }
}

/** Returns true if V3 serves every school. */
export const isAllOnV3 = ({ stage, percent }: StageSetting): boolean =>
  orderOf(stage) > orderOf('canary') || (stage === 'canary' && percent === 100)

const formatSetting = ({ stage, percent }: StageSetting): string =>
  stage === 'canary' ? `canary of ${percent} %` : stage
