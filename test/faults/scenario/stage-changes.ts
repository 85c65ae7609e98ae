import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { systemClock } from '../../../src/clock.ts'
import { AdapterError } from '../../../src/errors.ts'
import { backOf, judgeStep, nextOf, type Stage, type StageSetting } from '../../../src/rollout/stage.ts'
import { driveForward } from '../../../src/rollout/store/drive-change.ts'
import { openRolloutStore, type RolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import { runCli } from '../../cli/run-cli.ts'
import { disturb } from '../disturb.ts'
import { PARTNER, type Scenario, type ScenarioStages } from './scenario.ts'
import type { Instances } from './start-instances.ts'

export interface StageChangeCounts {
  readonly made: number
  readonly forward: number
  readonly back: number
  /** The number of successful changes that were made with the command line. */
  readonly commands: number
  /** The number of failed changes, by reason. */
  readonly refused: Readonly<Record<string, number>>
  /** The duration of the longest attempted step forward, and the total of all. A step forward may hold writes for its whole duration. */
  readonly longestMs: number
  readonly heldMs: number
}

export interface StageChanges {
  counts(): StageChangeCounts
  /** Lets each operator finish the current change. */
  stop(): Promise<void>
}

interface StageOutcome {
  readonly direction: 'forward' | 'back' | 'none'
  /** The reason of a failure, or `undefined` if the change was made. */
  readonly refusal: string | undefined
  readonly isCommand: boolean
}

/** The share of steps forward whose operator disappears after the proposal. The proposal expires or blocks the next one. */
const LEFT_SHARE = 0.05
/** The share of changes that are made with the command line, in a separate process. */
const COMMAND_SHARE = 0.08
const TRIES = 20

/**
 * Starts the operators that change the stage of the partner, each with its own connection to the store. Returns `undefined` if the scenario
 * changes no stage.
 */
export async function changeStages(
  { stages }: Scenario,
  { storeUrl, config }: Pick<Instances, 'storeUrl' | 'config'>,
  seed: number,
): Promise<StageChanges | undefined> {
  if (stages === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-operators-'))
  const configFile = join(folder, 'markbridge.yaml')
  writeFileSync(configFile, JSON.stringify(config))
  const tally = { made: 0, forward: 0, back: 0, commands: 0, longestMs: 0, heldMs: 0 }
  const refused: Record<string, number> = {}
  const count = ({ direction, refusal, isCommand }: StageOutcome, tookMs: number): void => {
    if (direction === 'forward') {
      tally.heldMs += tookMs
      tally.longestMs = Math.max(tally.longestMs, tookMs)
    }
    if (refusal !== undefined) {
      refused[refusal] = (refused[refusal] ?? 0) + 1
      return
    }
    tally.made += 1
    if (isCommand) tally.commands += 1
    if (direction !== 'none') tally[direction] += 1
  }
  const startOperator = async (_: unknown, number: number): Promise<() => Promise<void>> => {
    const random = createRandom(seed, `operator ${number}`)
    const store = await openRolloutStore({ url: storeUrl })
    const operator = { store, stages, random, name: `operator-${number}`, configFile }
    const changes = disturb(
      () => random.below(stages.gapMs),
      async () => {
        const startedMs = performance.now()
        const outcome = await changeOnce(operator).catch(toMissedStore)
        count(outcome, performance.now() - startedMs)
      },
    )
    return () => changes.stop().finally(() => store.close())
  }
  const operators = await Promise.all(Array.from({ length: stages.operators }, startOperator))
  return {
    counts: () => ({ ...tally, refused: { ...refused } }),
    stop: async () => {
      await Promise.all(operators.splice(0).map((stop) => stop()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function schoolsOf({ schools }: ScenarioStages): string[] {
  return Array.from({ length: schools }, (_, number) => `school-${number}`)
}

async function readState(store: RolloutStore, { begin }: ScenarioStages) {
  const state = (await store.snapshot()).partners.get(PARTNER)?.state
  const from: StageSetting = state ?? { stage: begin, percent: 0, always: [], never: [] }
  return { from, expectedRevision: state?.revision ?? 0 }
}

/**
 * Takes a partner that was left at `legacy` one step forward when the faults are over. At `legacy` the answers of V3 are known for
 * `resendWindowMs` only, and batches of the whole run are about to be resent.
 */
export async function leaveLegacy({ stages }: Scenario, storeUrl: string): Promise<void> {
  if (stages === undefined) return
  const store = await openRolloutStore({ url: storeUrl })
  try {
    for (let count = 0; count < TRIES; count += 1) {
      const { from, expectedRevision } = await readState(store, stages)
      if (from.stage !== 'legacy') return
      const to = { ...from, stage: 'shadow' } as const
      const change = { partner: PARTNER, expectedRevision, from, to, by: 'the run', reason: 'it ends' }
      await driveForward(store, { ...change, quietMs: 0 }, { drainMs: stages.drainMs, clock: systemClock })
    }
    throw new Error('the partner cannot be taken to shadow')
  } finally {
    await store.close()
  }
}

/** Converts the error of an unavailable store, which may or may not have made the change, into an outcome. Rethrows any other error. */
function toMissedStore(cause: unknown): StageOutcome {
  if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') throw cause
  return { direction: 'none', refusal: 'store missed', isCommand: false }
}

interface Operator {
  readonly store: RolloutStore
  readonly stages: ScenarioStages
  readonly random: Random
  /** The name in the audit trail. */
  readonly name: string
  readonly configFile: string
}

/** Draws one change of the partner's stage and makes it, by the store's functions or sometimes by the command line. */
async function changeOnce({ store, stages, random, name, configFile }: Operator): Promise<StageOutcome> {
  const { from, expectedRevision } = await readState(store, stages)
  const { to, isBack } = drawChange(random, from, schoolsOf(stages))
  const { direction, error } = judgeStep(from, to)
  if (error !== undefined) throw new Error(`an operator cannot want this: ${error}`)
  if (random.chance(COMMAND_SHARE))
    return { direction, refusal: await changeByCommand(configFile, to, isBack), isCommand: true }
  const isCommand = false
  const change = { partner: PARTNER, expectedRevision, from, to, by: name, reason: 'it is so' }
  if (direction !== 'forward') {
    const applied = await store.apply(change, isBack && to.stage === backOf(from.stage) ? 'back' : 'set')
    return { direction, refusal: applied.kind === 'applied' ? undefined : applied.kind, isCommand }
  }
  const { drainMs } = stages
  const quietMs = to.stage === 'shadow' ? 0 : stages.resendWindowMs
  if (random.chance(LEFT_SHARE)) {
    await store.propose({ ...change, quietMs, forMs: drainMs, needsApproval: false })
    return { direction, refusal: 'left', isCommand }
  }
  const result = await driveForward(store, { ...change, quietMs }, { drainMs, clock: systemClock })
  const isSilent = result.kind === 'undrained' && result.instances.some(({ writes }) => writes === undefined)
  const undrained = isSilent ? 'undrained (no answer)' : 'undrained (writes)'
  const refusal = result.kind === 'undrained' ? undrained : result.kind
  return { direction, refusal: result.kind === 'committed' ? undefined : refusal, isCommand }
}

/** Changes the stage of the partner with the command line. Returns the reason of a failure, or `undefined` if the change was made. */
async function changeByCommand(
  configFile: string,
  { stage, percent, always, never }: StageSetting,
  isBack: boolean,
): Promise<string | undefined> {
  const units = ['--percent', String(percent), '--always', always.join(','), '--never', never.join(',')]
  const set = [
    'set',
    PARTNER,
    stage,
    ...(stage === 'canary' ? units : []),
    '--reason',
    'it is so',
    '--despite-advice',
  ]
  const { status, stdout, stderr } = await runCli([
    ...['rollout', ...(isBack ? ['back', PARTNER] : set)],
    ...['--config', configFile, '--json'],
  ])
  if (status === 0) return undefined
  if (status !== 1) throw new Error(`the command failed: ${stderr}`)
  return `command: ${/"result": *"([^"]+)"/.exec(stdout)?.[1] ?? stderr.slice(0, 200)}`
}

/**
 * The shares of steps forward and of steps back at a stage. The remaining changes draw a new percentage, which matters at `canary` only.
 */
const habits: Readonly<Record<Stage, { readonly forward: number; readonly back: number }>> = {
  legacy: { forward: 1, back: 0 },
  shadow: { forward: 0.85, back: 0.15 },
  canary: { forward: 0.3, back: 0.2 },
  v3: { forward: 0.2, back: 0.8 },
  complete: { forward: 0, back: 1 },
}
/** The share of steps back from `v3` and `complete` that lead only one stage down. */
const ONE_DOWN_SHARE = 0.4

function drawChange(
  random: Random,
  setting: StageSetting,
  schools: readonly string[],
): { readonly to: StageSetting; readonly isBack: boolean } {
  const { stage } = setting
  const { forward, back } = habits[stage]
  const point = random.next()
  if (point < forward) {
    const next = nextOf(stage) ?? stage
    return {
      to: next === 'canary' ? drawShare(random, next, schools) : { ...setting, stage: next },
      isBack: false,
    }
  }
  if (point < forward + back) {
    if (stage === 'complete' && random.chance(ONE_DOWN_SHARE))
      return { to: { ...setting, stage: 'v3' }, isBack: false }
    if (stage === 'v3' && random.chance(ONE_DOWN_SHARE))
      return { to: drawShare(random, 'canary', schools), isBack: false }
    return { to: { ...setting, stage: backOf(stage) }, isBack: true }
  }
  return { to: drawShare(random, stage, schools), isBack: false }
}

/** Draws the percentage of schools that V3 serves, and sometimes a school that V3 always or never serves. */
function drawShare(random: Random, stage: Stage, schools: readonly string[]): StageSetting {
  const named = (): string[] => (random.chance(0.3) ? [random.pick([schools[0] ?? '', ...schools])] : [])
  return { stage, percent: random.below(101), always: named(), never: named() }
}
