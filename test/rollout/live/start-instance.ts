import { createStoredStages, type StoredStagesOptions } from '../../../src/rollout/live/stored-stages.ts'
import type { StageEntry } from '../../../src/rollout/decide.ts'
import type { Stage, StageSetting } from '../../../src/rollout/stage.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { ScriptedStore } from './scripted-store.ts'

export const LEASE_MS = 10_000

export const fileStage = (stage: Stage, more: Partial<StageSetting> = {}): StageSetting => ({
  stage,
  percent: 0,
  always: [],
  never: [],
  ...more,
})

export interface InstanceSettings {
  readonly file?: StageSetting
  readonly store?: ScriptedStore
  readonly number?: number
  readonly kept?: string
  readonly options?: Partial<StoredStagesOptions>
}

const secret = Buffer.from('synthetic secret of this test')
const describeEntry = ({ side, stage, known }: StageEntry): string => `${side} ${stage} ${known}`

/** Starts an instance whose clocks, lease and store change only when the test changes them. */
export async function startInstance(settings: InstanceSettings = {}) {
  const { file = fileStage('legacy'), store = new ScriptedStore(), number = 1 } = settings
  const clock = createManualClock()
  const skew = { monotonicMs: 0, wallMs: 1_000_000 }
  const log: string[] = []
  const saved: string[] = []
  const note = (name: string) => (event?: object) => void log.push(`${name} ${JSON.stringify(event ?? {})}`)
  const own = { lease: number as number | undefined }
  store.live.add(number)
  const stages = createStoredStages({
    store,
    instance: () => own.lease,
    renewLease: async () => undefined,
    clock: {
      ...clock,
      nowMs: () => clock.nowMs() + skew.monotonicMs,
      wallMs: () => clock.nowMs() + skew.wallMs,
    },
    kept: { load: async () => settings.kept, save: async (text) => void saved.push(text) },
    secret: () => secret,
    partners: () => [{ id: 'acme', fileStage: file }],
    events: {
      stageChanged: note('stageChanged'),
      stagesStale: note('stagesStale'),
      stagesFresh: note('stagesFresh'),
      trailDamaged: note('trailDamaged'),
      stagesNotKept: note('stagesNotKept'),
    },
    metrics: { stageHeld: note('stageHeld'), stageRefused: note('stageRefused') },
    staleAfterMs: LEASE_MS,
    drainMs: 10_000,
    resendWindowMs: 60_000,
    ...settings.options,
  })
  await stages.start()
  await clock.pass(0)
  const enter = (unit = 'school', stage = file): Promise<StageEntry> =>
    Promise.resolve(stages.enter({ id: 'acme', fileStage: stage }, { kind: 'batch', unit }))
  return {
    stages,
    store,
    log,
    saved,
    /** Advances both clocks, so that timers fire. */
    pass: (ms: number) => clock.pass(ms),
    /** Simulates a pause of the process: the clocks advance, but no timer fires before the next request. */
    pause: (ms: number, clocks: 'both' | 'wall' = 'both') => {
      skew.wallMs += ms
      if (clocks === 'both') skew.monotonicMs += ms
    },
    get lease(): number | undefined {
      return own.lease
    },
    set lease(next) {
      own.lease = next
    },
    /**
     * Begins a write. Returns `waits` if the write is held, an error code, or the side and stage of an admitted write with what the journal
     * must store, such as `v2 shadow keys`.
     */
    write: async (unit = 'school', stage = file) => {
      let settled = 'waits'
      void enter(unit, stage).then(
        (entry) => {
          settled = describeEntry(entry)
          entry.release()
        },
        (error: unknown) => (settled = (error as { code: string }).code),
      )
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
      return settled
    },
    /** Begins a write that stays in progress until its `release` is called. */
    begin: enter,
    read: async (stage = file) => {
      try {
        return describeEntry(
          await stages.enter({ id: 'acme', fileStage: stage }, { kind: 'readKey', unit: 'x' }),
        )
      } catch (error) {
        return (error as { code: string }).code
      }
    },
  }
}

/** Returns the outcome of a write so far, which is `waits` while the write is held. */
export function follow(entering: Promise<StageEntry>): { outcome: string } {
  const followed = { outcome: 'waits' }
  entering.then(
    (entry) => {
      followed.outcome = describeEntry(entry)
      entry.release()
    },
    (error: unknown) => (followed.outcome = (error as { code: string }).code),
  )
  return followed
}
