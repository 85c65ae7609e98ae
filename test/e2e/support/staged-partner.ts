import { onTestFinished } from 'vitest'

import { systemClock } from '../../../src/clock.ts'
import type { JournalKey } from '../../../src/journal/index.ts'
import type { Stage, StageSetting } from '../../../src/rollout/stage.ts'
import { driveForward, type DriveResult } from '../../../src/rollout/store/drive-change.ts'
import { type OpenedRolloutStore, openRolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { sampleMark, sandboxHeaders, startSandbox } from '../../sandbox/start-sandbox.ts'
import { batchOf, postBatch } from '../../support/batch-request.ts'
import type { Adapter, Reply } from '../../support/start-adapter.ts'

/** A sandbox with both interfaces, each on its own port. */
export interface TwoFaces {
  readonly v3Url: string
  readonly v2Url: string
  /** Builds a batch with one mark. `comment` identifies the mark. */
  batch(comment: string): ReturnType<typeof batchOf>
  /** Returns the interface that recorded each mark, by the mark's comment. */
  faces(): Promise<ReadonlyMap<string, 'V2' | 'V3'>>
}

export async function startTwoFaces(): Promise<TwoFaces> {
  const sandbox = await startSandbox({ v2Port: 0 })
  const samples = await sandbox.samples()
  let next = 0
  return {
    v3Url: sandbox.url,
    v2Url: sandbox.v2Url,
    batch: (comment) => {
      next += 1
      return batchOf([sampleMark(samples, next % samples.learners.length, { Comment: comment })])
    },
    faces: async () => {
      const effects = (await sandbox.effects()) as { comment: string; face: 'V2' | 'V3' }[]
      return new Map(effects.map(({ comment, face }) => [comment, face]))
    },
  }
}

/** Returns the settings of an adapter whose configuration sets the stage of the partner `acme`. */
export function stagedSettings(
  { v2Url }: Pick<TwoFaces, 'v2Url'>,
  journalUrl: string,
  stage: Stage,
  more: { readonly journal?: object } = {},
) {
  return {
    journal: { url: journalUrl, ...more.journal },
    partners: [{ id: 'acme', match: { any: true }, stage, v2: { baseUrl: v2Url } }],
  }
}

export const post = (adapter: Adapter, batch: ReturnType<typeof batchOf>): Promise<Reply> =>
  postBatch(adapter, batch, sandboxHeaders)

const setting = (stage: Stage, percent = 100): StageSetting => ({ stage, percent, always: [], never: [] })

export interface StageOperator {
  readonly store: OpenedRolloutStore
  forward(to: Stage, drainMs?: number, percent?: number): Promise<DriveResult>
  back(to: Stage): Promise<unknown>
}

/** Opens the store of stages, so that the test can change the stage like an operator. `first` is the configured stage. */
export async function operate(
  url: string,
  first: Stage,
  keys: readonly JournalKey[] = [],
): Promise<StageOperator> {
  const store = await openRolloutStore({ url, keys })
  onTestFinished(() => store.close().catch(() => undefined))
  const change = async (to: StageSetting) => {
    const known = (await store.snapshot()).partners.get('acme')?.state
    const from: StageSetting = known ?? setting(first)
    const by = { by: 'tester', reason: 'test' }
    return { partner: 'acme', expectedRevision: known?.revision ?? 0, from, to, ...by }
  }
  return {
    store,
    forward: async (to, drainMs = 5_000, percent) =>
      driveForward(
        store,
        { ...(await change(setting(to, percent))), quietMs: 0 },
        { drainMs, clock: systemClock },
      ),
    back: async (to) => store.apply(await change(setting(to, 0)), 'back'),
  }
}
