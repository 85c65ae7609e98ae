import { vi } from 'vitest'

import type { AppOverrides } from '../../../src/index.ts'
import type { KnownWrite, LiveStages } from '../../../src/rollout/decide.ts'
import type { Stage } from '../../../src/rollout/stage.ts'
import { sampleMark, sandboxHeaders, startSandbox } from '../../sandbox/start-sandbox.ts'
import { batchOf, type BatchText, postBatch } from '../../support/batch-request.ts'
import { type Adapter, startAdapter } from '../../support/start-adapter.ts'
import { journalFile, type JournalSection } from './journal-file.ts'

/** The stage that the test sets: the side (V2 or V3) that serves writes, and how the adapter recognises resent writes that V2 served. */
export interface Served {
  side: 'v2' | 'v3'
  stage: Stage
  known: KnownWrite
  isCurrent: boolean
}

interface Effect {
  readonly face: 'V2' | 'V3'
  readonly learner: string
  readonly comment: string | null
}

/** A sandbox with both interfaces, and adapters in front of it whose stage the test sets. */
export interface TwoFaces {
  readonly url: string
  readonly served: Served
  readonly journal: JournalSection
  readonly partner: object
  /** Starts another instance on the same journal. */
  start(overrides?: AppOverrides, settings?: object): Promise<Adapter>
  /** Builds a batch with one mark for each of these learners, which are indexes of the sandbox's samples. */
  batch(learners: readonly number[], comment: string, ids?: string): BatchText
  post(adapter: Adapter, batch: BatchText): ReturnType<typeof postBatch>
  /** Returns the accepted marks in order, as `interface learner comment`. */
  effects(): Promise<string[]>
  setFaults(faults: object | readonly object[]): Promise<void>
  /** Changes the service: the values that it stores, or the time of its clock. */
  change(what: 'values' | 'clock', to: object): Promise<void>
  waitForEffects(count: number): Promise<string[]>
}

/** Starts the service. All adapters share `journal`. The service's clock stands still, `aheadMs` (default 0) after this start. */
export async function startTwoFaces(
  choices: object = {},
  journal: JournalSection = journalFile(),
  { aheadMs = 0, ...own }: { readonly aheadMs?: number; readonly onExisting?: 'duplicate' } = {},
): Promise<TwoFaces> {
  const tokens = [{ token: 'second', domains: ['Attendance'] }]
  const sandbox = await startSandbox({ now: new Date(Date.now() + aheadMs).toISOString(), tokens, ...own })
  const samples = await sandbox.samples()
  const served: Served = { side: 'v2', stage: 'canary', known: 'keys', isCurrent: true }
  const stages: LiveStages = {
    enter: (_partner, { kind }) => {
      const { side, stage, known } = served
      const isWrite = kind === 'batch' || kind === 'record'
      return {
        side,
        stage,
        known: isWrite ? known : 'nothing',
        revision: 1,
        isCurrent: () => served.isCurrent,
        isStoreAnswering: () => false,
        release: () => undefined,
      }
    },
  }
  const effects = async (): Promise<string[]> =>
    ((await sandbox.effects()) as Effect[]).map(
      ({ face, learner, comment }) => `${face} ${samples.learners.indexOf(learner)} ${comment ?? ''}`,
    )
  const put = async (what: string, to: object): Promise<void> => {
    const { status } = await sandbox.put(what, to)
    if (status >= 300) throw new Error(`the ${what} were refused with ${status}`)
  }
  const partner = {
    id: 'acme',
    match: { any: true },
    stage: 'v3',
    v2: { baseUrl: sandbox.url },
    v3: { readBackAfterMs: [20, 100] },
    ...choices,
  }
  return {
    url: sandbox.url,
    served,
    journal,
    partner,
    start: (overrides = {}, settings = {}) =>
      startAdapter(sandbox.url, { journal, partners: [partner], ...settings }, { stages, ...overrides }),
    batch: (learners, comment, ids = comment) =>
      batchOf(
        learners.map((learner) => sampleMark(samples, learner, { Comment: comment })),
        { batch: `batch_${ids}`, changeset: `changeset_${ids}` },
      ),
    post: (adapter, batch) => postBatch(adapter, batch, sandboxHeaders),
    effects,
    setFaults: (faults) => put('faults', faults),
    change: put,
    waitForEffects: (count) =>
      vi.waitFor(
        async () => {
          const now = await effects()
          if (now.length < count) throw new Error(`only ${now.join()}`)
          return now
        },
        { timeout: 60_000 },
      ),
  }
}

export async function startRelayed(served: Partial<Served> = {}, choices: object = {}, aheadMs = 0) {
  const faces = await startTwoFaces(choices, undefined, { aheadMs })
  Object.assign(faces.served, served)
  return { faces, adapter: await faces.start(), batch: faces.batch([1], 'one') }
}
