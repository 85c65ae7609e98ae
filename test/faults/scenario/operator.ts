import { backOf, driveForward, judgeStep, type RolloutStore } from '../../../src/rollout/index.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Random } from '../../../src/sandbox/random.ts'
import { drawChange, swing } from './draw-change.ts'
import { PARTNER } from './partner.ts'
import { changeByCommand } from './stage-command.ts'
import type { ScenarioStages } from './scenario.ts'

/** One change that was tried. */
export interface StageOutcome {
  readonly direction: 'forward' | 'back' | 'none'
  /** Undefined: it was made. */
  readonly refusal: string | undefined
  /** With the command line. */
  readonly isCommand: boolean
}

export interface OperatorOptions {
  readonly store: RolloutStore
  readonly stages: ScenarioStages
  readonly schools: readonly string[]
  readonly random: Random
  /** In the audit trail. */
  readonly name: string
  /** For the command line. */
  readonly configFile: string
}

/** Share of the steps forward whose operator is gone once they were proposed: they expire, or are in the way of the next one. */
const LEFT_SHARE = 0.05

/** Share of the changes that are made with the command line, in a process of its own. */
const COMMAND_SHARE = 0.08

/** Changes the stage of the partner once, as the commands do. */
export async function changeOnce(options: OperatorOptions): Promise<StageOutcome> {
  const { store, stages, schools, random, name } = options
  const state = (await store.snapshot()).partners.get(PARTNER)?.state
  const begin: StageSetting = { stage: stages.begin, percent: 0, always: [], never: [] }
  const from = state ?? begin
  const { to, isBack } = stages.swings === true ? swing(from) : drawChange(random, from, schools)
  const { direction, error } = judgeStep(from, to)
  if (error !== undefined) throw new Error(`an operator cannot want this: ${error}`)
  if (random.chance(COMMAND_SHARE)) {
    return { direction, refusal: await changeByCommand(options.configFile, to, isBack), isCommand: true }
  }
  const expectedRevision = state?.revision ?? 0
  const isCommand = false
  const change = { partner: PARTNER, expectedRevision, from, to, by: name, reason: 'it is so' }
  if (direction !== 'forward') {
    const applied = await store.apply(change, isBack && to.stage === backOf(from.stage) ? 'back' : 'set')
    return { direction, refusal: applied.kind === 'applied' ? undefined : applied.kind, isCommand }
  }
  const quietMs = to.stage === 'shadow' ? 0 : stages.resendWindowMs
  if (random.chance(LEFT_SHARE)) {
    await store.propose({ ...change, quietMs, forMs: stages.drainMs, needsApproval: false })
    return { direction, refusal: 'left', isCommand }
  }
  const result = await driveForward(
    store,
    { ...change, quietMs },
    { drainMs: stages.drainMs, clock: systemClock },
  )
  return { direction, refusal: result.kind === 'committed' ? undefined : describe(result), isCommand }
}

function describe(result: Exclude<Awaited<ReturnType<typeof driveForward>>, { kind: 'committed' }>): string {
  if (result.kind !== 'undrained') return result.kind
  const isSilent = result.instances.some(({ writes }) => writes === undefined)
  return isSilent ? 'undrained (no answer)' : 'undrained (writes)'
}
