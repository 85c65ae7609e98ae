import { AdapterError } from '../../../src/errors.ts'
import type { Acknowledgement, RolloutSnapshot } from '../../../src/rollout/store/read-snapshot.ts'
import type { RolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import type { Change } from '../../../src/rollout/store/changes.ts'
import type { KnownTrail } from '../../../src/rollout/store/audit-trail.ts'
import type { PendingChange, StageState } from '../../../src/rollout/store/stage-rows.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'

/** A store whose answers come when the test says so: what databases do at the worst moment. */
export interface ScriptedStore {
  snapshot(known?: KnownTrail): Promise<RolloutSnapshot>
  /** The trail that the last question knew. */
  readonly known: () => KnownTrail | undefined
  /** False: the store finds the trail damaged. */
  trailIsSound: boolean
  acknowledge(instance: number, rows: readonly Acknowledgement[]): Promise<void>
  leave(instance: number): Promise<void>
  begin(partner: string, setting: StageSetting): Promise<void>
  apply(change: Change): ReturnType<RolloutStore['apply']>
  noteUnrecorded(partner: string, agoMs: number): Promise<void>
  readonly begins: Map<string, StageSetting>
  /** Changes that instances have made. */
  readonly applied: Change[]
  readonly unrecorded: Map<string, number>
  readonly live: Set<number>
  readonly unsettled: Map<string, number>
  readonly damaged: Set<string>
  /** `up` answers at once, `down` refuses, `hung` answers when `answer` is called. */
  mode: 'up' | 'down' | 'hung'
  /** The clock of the database; stages are set at 0. */
  nowMs: number
  /** Answers the oldest question that hangs, with what the store said when it was asked, or says now. */
  answer(said: 'then' | 'now'): void
  set(partner: string, setting: Partial<StageSetting> & Pick<StageSetting, 'stage'>): void
  propose(
    partner: string,
    setting: Partial<StageSetting> & Pick<StageSetting, 'stage'>,
    needsApproval?: boolean,
  ): number
  withdraw(partner: string): void
  commit(partner: string): void
  /** What an instance has said of a partner. */
  said(instance: number, partner: string): Acknowledgement | undefined
  readonly questions: number
}

export function createScriptedStore(): ScriptedStore {
  const stages = new Map<string, { state: StageState | undefined; pending: PendingChange | undefined }>()
  const said = new Map<string, Acknowledgement & { readonly instance: number }>()
  const hanging: { then: RolloutSnapshot; resolve: (snapshot: RolloutSnapshot) => void }[] = []
  let revision = 0
  const whole = (setting: Partial<StageSetting> & Pick<StageSetting, 'stage'>): StageSetting => ({
    percent: 0,
    always: [],
    never: [],
    ...setting,
  })
  const trail = (): KnownTrail => ({
    ...{ keyName: 'key', entries: revision, mac: `mac ${revision}`, repairedMs: 0 },
    revisions: [...stages].map(([partner, { state }]) => [partner, state?.revision ?? 0] as const),
  })
  const read = (): RolloutSnapshot => ({
    nowMs: store.nowMs,
    trail: store.trailIsSound ? trail() : undefined,
    partners: new Map(stages),
    begins: new Map(store.begins),
    damaged: new Set(store.damaged),
    unsettled: new Map(store.unsettled),
    liveInstances: [...store.live],
    acknowledgements: [...said.values()].filter(({ instance }) => store.live.has(instance)),
  })
  const down = (): AdapterError => new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'down')
  let questions = 0
  let known: KnownTrail | undefined
  const by = { by: 'test', reason: 'test' }
  const store: ScriptedStore = {
    mode: 'up',
    nowMs: 0,
    live: new Set(),
    unsettled: new Map(),
    damaged: new Set(),
    get questions() {
      return questions
    },
    known: () => known,
    trailIsSound: true,
    snapshot: (now) => {
      questions += 1
      known = now
      if (store.mode === 'down') return Promise.reject(down())
      if (store.mode === 'up') return Promise.resolve(read())
      const then = read()
      return new Promise((resolve) => hanging.push({ then, resolve }))
    },
    acknowledge: async (instance, rows) => {
      if (store.mode === 'down') throw down()
      if (store.mode === 'hung') await new Promise(() => undefined)
      for (const row of rows) said.set(`${instance} ${row.partner}`, { instance, ...row })
    },
    leave: async () => undefined,
    begins: new Map(),
    begin: async (partner, setting) => {
      if (store.mode === 'down') throw down()
      if (!store.begins.has(partner)) store.begins.set(partner, setting)
    },
    applied: [],
    apply: async (change) => {
      if (store.mode === 'down') throw down()
      if ((stages.get(change.partner)?.state?.revision ?? 0) !== change.expectedRevision)
        return { kind: 'stale' }
      store.applied.push(change)
      store.set(change.partner, change.to)
      return { kind: 'applied', revision }
    },
    unrecorded: new Map(),
    noteUnrecorded: async (partner, agoMs) => {
      if (store.mode === 'down') throw down()
      store.unrecorded.set(partner, agoMs)
    },
    answer: (what) => {
      const question = hanging.shift()
      question?.resolve(what === 'then' ? question.then : read())
    },
    set: (partner, setting) => {
      revision += 1
      stages.set(partner, {
        state: { partner, revision, sinceMs: 0, ...by, ...whole(setting) },
        pending: undefined,
      })
    },
    propose: (partner, setting, needsApproval = false) => {
      revision += 1
      const known = stages.get(partner) ?? { state: undefined }
      const pending = { ...whole(setting), revision, ...by, expiresMs: 1e9, needsApproval }
      stages.set(partner, { ...known, pending })
      return revision
    },
    withdraw: (partner) => {
      const known = stages.get(partner)
      if (known !== undefined) stages.set(partner, { ...known, pending: undefined })
    },
    commit: (partner) => {
      const known = stages.get(partner)
      if (known?.pending === undefined) throw new Error('nothing to commit')
      stages.set(partner, { state: { partner, sinceMs: 0, ...known.pending }, pending: undefined })
    },
    said: (instance, partner) => {
      const row = said.get(`${instance} ${partner}`)
      if (row === undefined) return undefined
      return row
    },
  }
  return store
}
