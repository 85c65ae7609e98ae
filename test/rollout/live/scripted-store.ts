import { AdapterError } from '../../../src/errors.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'
import type { Head } from '../../../src/rollout/store/audit-trail.ts'
import type { Change } from '../../../src/rollout/store/changes.ts'
import type { Acknowledgement, RolloutSnapshot } from '../../../src/rollout/store/read-snapshot.ts'
import type { RolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import type { PartnerRollout } from '../../../src/rollout/store/stage-rows.ts'

type GivenSetting = Partial<StageSetting> & Pick<StageSetting, 'stage'>

const whole = (setting: GivenSetting): StageSetting => ({ percent: 0, always: [], never: [], ...setting })
const by = { by: 'test', reason: 'test' }

/** A stub of the store of stages. The test controls when its answers arrive. */
export class ScriptedStore {
  /** In mode `up` each call succeeds at once, and in mode `down` it fails. In mode `hung` a snapshot waits until the test calls `answer`. */
  mode: 'up' | 'down' | 'hung' = 'up'
  /** The clock of the database in milliseconds. Stages begin at 0. */
  nowMs = 0
  /** False if the audit trail does not continue the trail that the caller knows. */
  isTrailContinued = true
  questions = 0
  /** The trail that the caller of the last snapshot knew. */
  known: Head | undefined
  readonly live = new Set<number>()
  readonly unsettled = new Set<string>()
  readonly begins = new Map<string, StageSetting>()
  /** The changes made by `apply`. */
  readonly applied: Change[] = []
  readonly unrecorded = new Map<string, number>()
  readonly #stages = new Map<string, PartnerRollout>()
  readonly #said = new Map<string, Acknowledgement & { readonly instance: number }>()
  readonly #hanging: {
    left: readonly string[]
    then: RolloutSnapshot
    resolve: (snapshot: RolloutSnapshot) => void
  }[] = []
  #revision = 0

  async snapshot(known?: Head, left: readonly string[] = []): Promise<RolloutSnapshot> {
    this.questions += 1
    this.known = known
    this.#expectUp()
    const then = this.#read(left)
    return this.mode === 'up' ? then : new Promise((resolve) => this.#hanging.push({ left, then, resolve }))
  }

  async acknowledge(instance: number, rows: readonly Acknowledgement[]): Promise<void> {
    this.#expectUp()
    if (this.mode === 'hung') await new Promise(() => undefined)
    for (const row of rows) this.#said.set(`${instance} ${row.partner}`, { instance, ...row })
  }

  async forget(): Promise<void> {}

  async begin(partner: string, setting: StageSetting): Promise<void> {
    this.#expectUp()
    if (!this.begins.has(partner)) this.begins.set(partner, setting)
  }

  async apply(change: Change): ReturnType<RolloutStore['apply']> {
    this.#expectUp()
    if ((this.#stages.get(change.partner)?.state?.revision ?? 0) !== change.expectedRevision)
      return { kind: 'stale' }
    this.applied.push(change)
    this.set(change.partner, change.to)
    return { kind: 'applied', revision: this.#revision }
  }

  async noteUnrecorded(partner: string, agoMs: number): Promise<void> {
    this.#expectUp()
    this.unrecorded.set(partner, agoMs)
  }

  /** Answers the oldest waiting call with the stages at the time of the call (`then`) or with the current stages (`now`). */
  answer(said: 'then' | 'now'): void {
    const question = this.#hanging.shift()
    question?.resolve(said === 'then' ? question.then : this.#read(question.left))
  }

  set(partner: string, setting: GivenSetting): void {
    const state = { partner, revision: ++this.#revision, sinceMs: 0, ...by, ...whole(setting) }
    this.#stages.set(partner, { state, pending: undefined })
  }

  propose(partner: string, setting: GivenSetting, needsApproval = false): number {
    const revision = ++this.#revision
    const kept = { from: whole({ stage: 'legacy' }), expiresMs: 1e9, forMs: 1e9, needsApproval, quietMs: 0 }
    const pending = { ...whole(setting), revision, ...by, ...kept }
    this.#stages.set(partner, { state: this.#stages.get(partner)?.state, pending })
    return revision
  }

  withdraw(partner: string): void {
    this.#stages.set(partner, { state: this.#stages.get(partner)?.state, pending: undefined })
  }

  commit(partner: string): void {
    const pending = this.#stages.get(partner)?.pending
    if (pending === undefined) throw new Error('nothing to commit')
    this.#stages.set(partner, { state: { partner, sinceMs: 0, ...pending }, pending: undefined })
  }

  /** Returns the last acknowledgement of an instance for a partner. */
  said(instance: number, partner: string): Acknowledgement | undefined {
    return this.#said.get(`${instance} ${partner}`)
  }

  #expectUp(): void {
    if (this.mode === 'down') throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'down')
  }

  #read(left: readonly string[]): RolloutSnapshot {
    const { nowMs } = this
    const trail = { entries: this.#revision, hash: `hash ${this.#revision}` }
    return {
      nowMs,
      trail: this.isTrailContinued ? trail : undefined,
      partners: new Map(this.#stages),
      begins: new Map(this.begins),
      settled: new Set(left.filter((partner) => !this.unsettled.has(partner))),
      liveInstances: [...this.live],
      acknowledgements: [...this.#said.values()].filter(({ instance }) => this.live.has(instance)),
    }
  }
}
