import { addWindow } from '../../../src/rollout/guards/sequential-test.ts'
import { newGuardState, type GuardState } from '../../../src/rollout/guards/sequential-test.ts'
import {
  type BadOutcome,
  badOutcomes,
  createTrialWindows,
} from '../../../src/rollout/guards/trial-windows.ts'
import type { Side } from '../../../src/rollout/stage.ts'

/** Creates a repeatable sequence of numbers from 0 to 1 (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface SimulatedSchool {
  readonly name: string
  readonly side: Side
  /** The average number of batches in a window of 10 s. */
  readonly batches: number
  readonly records: number
}

/** Returns, for each bad outcome, the probability that a record of a school has this outcome at a time. */
export type BadShare = (
  school: SimulatedSchool,
  nowMs: number,
) => Partial<Record<Exclude<BadOutcome, 'slow'>, number>>

export interface Simulated {
  readonly evidence: GuardState
  /** The number of records that were sent to V3. */
  readonly v3Records: number
  readonly windows: number
}

export const WINDOW_MS = 10_000

/** Simulates windows of writes until `isOver` returns true. Each school sends its batches close together, as real schools do. */
export function simulate(
  schools: readonly SimulatedSchool[],
  badShare: BadShare,
  random: () => number,
  isOver: (run: Simulated) => boolean,
  evidence = newGuardState,
  firstWindow = 0,
): Simulated {
  const windows = createTrialWindows()
  let run: Simulated = { evidence, v3Records: 0, windows: firstWindow }
  while (!isOver(run)) {
    const startMs = run.windows * WINDOW_MS
    let { v3Records } = run
    for (const school of schools) {
      const batches = poisson(school.batches, random)
      const beganMs = startMs + random() * WINDOW_MS
      for (let batch = 0; batch < batches; batch++) {
        const receivedMs = Math.min(beganMs + batch * 200, startMs + WINDOW_MS - 1)
        if (school.side === 'v3') v3Records += school.records
        const trial = windows.begin({
          unit: school.name,
          side: school.side,
          receivedMs,
          records: school.records,
        })
        if (trial === undefined) continue
        const shares = badShare(school, receivedMs)
        const happened = badOutcomes.filter(
          (kind) => kind !== 'slow' && random() < 1 - (1 - (shares[kind] ?? 0)) ** school.records,
        )
        trial.end({
          outcome: happened.find((kind) => kind !== 'slow') ?? 'good',
          latencyMs: 100 + 400 * random() ** 4,
        })
      }
    }
    let next = run.evidence
    for (const window of windows.close(startMs + WINDOW_MS)) next = addWindow(next, window)
    run = { evidence: next, v3Records, windows: run.windows + 1 }
  }
  return run
}

function poisson(mean: number, random: () => number): number {
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random(); product > limit; product *= random()) count += 1
  return count
}
