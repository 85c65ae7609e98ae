import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { AdapterError } from '../../../src/errors.ts'
import { systemClock } from '../../../src/clock.ts'
import { driveForward, openRolloutStore } from '../../../src/rollout/index.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { changeOnce, type OperatorOptions, type StageOutcome } from './operator.ts'
import { PARTNER } from './partner.ts'
import type { Scenario, ScenarioStages } from './scenario.ts'
import type { Instances } from './start-instances.ts'

/** What became of the changes that were tried. */
export interface StageChangeCounts {
  readonly made: number
  readonly forward: number
  readonly back: number
  /** Those that were made with the command line, among them. */
  readonly commands: number
  /** By the reason. */
  readonly refused: Readonly<Record<string, number>>
  /** The longest step forward that was tried, and all of them: so long writes may have been held. */
  readonly longestMs: number
  readonly heldMs: number
}

/** Operators at work. */
export interface StageChanges {
  counts(): StageChangeCounts
  /** Lets each operator finish what it is at. */
  stop(): Promise<void>
}

const TRIES = 20

/**
 * Takes a partner that was left at `legacy` one step forward, when the faults are over: at `legacy` the answers of V3 are known for
 * `resendWindowMs` only, and batches of the whole run are about to be sent once more.
 */
export async function leaveLegacy({ stages }: Scenario, storeUrl: string): Promise<void> {
  if (stages === undefined) return
  const store = await openRolloutStore({ url: storeUrl })
  try {
    for (let count = 0; count < TRIES; count += 1) {
      const state = (await store.snapshot()).partners.get(PARTNER)?.state
      const from: StageSetting = state ?? { stage: stages.begin, percent: 0, always: [], never: [] }
      if (from.stage !== 'legacy') return
      const to = { ...from, stage: 'shadow' } as const
      const change = {
        partner: PARTNER,
        expectedRevision: state?.revision ?? 0,
        from,
        to,
        by: 'the run',
        reason: 'it ends',
      }
      await driveForward(store, { ...change, quietMs: 0 }, { drainMs: stages.drainMs, clock: systemClock })
    }
    throw new Error('the partner cannot be taken to shadow')
  } finally {
    await store.close()
  }
}

/** The names of the schools of a scenario. */
export function schoolsOf({ schools }: ScenarioStages): string[] {
  return Array.from({ length: schools }, (_, number) => `school-${number}`)
}

/** A store that stands still for a moment may have made the change, or not. */
function missStore(cause: unknown): StageOutcome {
  if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') throw cause
  return { direction: 'none', refusal: 'store missed', isCommand: false }
}

/** Starts to change the stage of the partner, if the scenario wants it: several operators, each with a connection of its own. */
export function changeStages(
  { stages }: Scenario,
  { storeUrl, config }: Pick<Instances, 'storeUrl' | 'config'>,
  seed: number,
): StageChanges | undefined {
  if (stages === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-operators-'))
  const configFile = join(folder, 'markbridge.yaml')
  writeFileSync(configFile, JSON.stringify(config))
  const stopping = new AbortController()
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
  const operate = async (options: OperatorOptions): Promise<void> => {
    const { signal } = stopping
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await delay(options.random.below(stages.gapMs), undefined, { signal }).catch(() => undefined)
      if (isOver()) return
      const startedMs = performance.now()
      const outcome = await changeOnce(options).catch(missStore)
      count(outcome, performance.now() - startedMs)
    }
  }
  const running = Array.from({ length: stages.operators }, async (_, number) => {
    const random = createRandom(seed, `operator ${number}`)
    const store = await openRolloutStore({ url: storeUrl })
    try {
      const schools = schoolsOf(stages)
      await operate({ store, stages, schools, random, name: `operator-${number}`, configFile })
    } finally {
      await store.close()
    }
  })
  return {
    counts: () => ({ ...tally, refused: { ...refused } }),
    stop: async () => {
      stopping.abort()
      await Promise.all(running)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
