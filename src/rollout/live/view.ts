import type { KnownTrail, PartnerRollout, RolloutSnapshot } from '../store/rollout-store.ts'
import type { Stage, StageSetting } from '../stage.ts'
import type { Sighting } from './sighting.ts'

/** A setting with the revision of the store; 0: that of the file. */
export interface RevisedSetting extends StageSetting {
  readonly revision: number
}

/** What an instance knows of a partner of the store. */
export interface PartnerView {
  /** Undefined: that of the file counts, until the first change is committed. */
  readonly setting: RevisedSetting | undefined
  /** A change that waits for instances: undefined also for one that still needs an approval. */
  readonly pending: RevisedSetting | undefined
  /** False: the row of the store is damaged, and this is how it was read before. */
  readonly sound: boolean
}

/** The stages as they were read last. */
export interface StageView {
  readonly partners: ReadonlyMap<string, PartnerView>
  /** Where partners first began by a file. */
  readonly begins: ReadonlyMap<string, StageSetting>
  /** Partners whose stage was never read: their row is damaged. */
  readonly damaged: ReadonlySet<string>
  /** How far the audit trail had come when it was last well; undefined: that was not read yet. */
  readonly trail: KnownTrail | undefined
  /** False: it is damaged now, and a partner without a stage of its own has none. */
  readonly trailIsSound: boolean
  /** When the store was asked; undefined: this was kept by an earlier process. */
  readonly asked: Sighting | undefined
  /** The lease under which it was read, and that the store counted with; undefined: none. */
  readonly instance: number | undefined
}

/** The view that a snapshot gives. `instance`: the lease that was held when it was asked for. */
export function toView(
  snapshot: RolloutSnapshot,
  asked: Sighting,
  instance: number | undefined,
  before: StageView | undefined,
): StageView {
  const partners = new Map(
    [...snapshot.partners].map(([partner, rollout]) => [partner, toPartnerView(rollout)]),
  )
  const damaged = new Set<string>()
  for (const partner of snapshot.damaged) {
    const known = before?.partners.get(partner)
    if (known === undefined) damaged.add(partner)
    else partners.set(partner, { ...known, sound: false })
  }
  // An instance that the store does not count with is not waited for: it knows nothing of what comes next.
  const counted = instance !== undefined && snapshot.liveInstances.includes(instance)
  return {
    partners,
    begins: snapshot.begins,
    damaged,
    trail: snapshot.trail ?? before?.trail,
    trailIsSound: snapshot.trail !== undefined,
    asked,
    instance: counted ? instance : undefined,
  }
}

function toPartnerView({ state, pending }: PartnerRollout): PartnerView {
  return {
    setting: state && toSetting(state),
    pending: pending === undefined || pending.needsApproval ? undefined : toSetting(pending),
    sound: true,
  }
}

const toSetting = ({ stage, percent, always, never, revision }: RevisedSetting): RevisedSetting => ({
  stage,
  percent,
  always,
  never,
  revision,
})

/** True where two views say the same of all partners and of the trail. */
export function isSameView(one: StageView | undefined, other: StageView): boolean {
  if (one?.partners.size !== other.partners.size || one.begins.size !== other.begins.size) return false
  if (one.trail?.mac !== other.trail?.mac || one.trail?.repairedMs !== other.trail?.repairedMs) return false
  return [...other.partners].every(([partner, { setting, pending }]) => {
    const known = one.partners.get(partner)
    return known?.setting?.revision === setting?.revision && known?.pending?.revision === pending?.revision
  })
}

/** True for stages at which V2 serves every unit. */
export function isServedByV2(stage: Stage): boolean {
  return stage === 'legacy' || stage === 'shadow'
}
