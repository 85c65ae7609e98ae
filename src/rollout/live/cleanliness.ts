import type { RolloutSnapshot } from '../store/rollout-store.ts'
import { isServedByV2 } from './view.ts'
import type { RevisedSetting } from './view.ts'

/**
 * Which partners are clean: V2 serves all their units, no instance has a write of V3 under way from before, none of their records of
 * V3 is unsettled, and no batch that V3 has answered may come again. Then nothing can be overtaken or doubled by what V2 serves. A partner
 * stays clean until V3 serves it again.
 */
export interface Cleanliness {
  isClean(partner: string, revision: number): boolean
  /** Takes a snapshot that was asked for after all that came before; true: a partner is clean now that was not, or the other way round. */
  observe(snapshot: RolloutSnapshot, settings: ReadonlyMap<string, RevisedSetting>): boolean
  /** The clean partners with their revisions. */
  list(): readonly (readonly [partner: string, revision: number])[]
}

interface Progress {
  readonly revision: number
  readonly state: 'left' | 'drained' | 'clean'
  /** Clean at the revision before, so that V3 has answered nothing that may come again. */
  readonly isQuiet: boolean
}

/** Starts with the partners that an earlier process found clean. */
export function createCleanliness(
  kept: Iterable<readonly [string, number]>,
  resendWindowMs: number,
): Cleanliness {
  const progress = new Map<string, Progress>()
  for (const [partner, revision] of kept) progress.set(partner, { revision, state: 'clean', isQuiet: true })
  const isClean = (partner: string, revision: number): boolean => {
    const known = progress.get(partner)
    return known?.state === 'clean' && known.revision === revision
  }
  const step = (partner: string, revision: number, snapshot: RolloutSnapshot, drained: Drained): void => {
    const known = progress.get(partner)
    if (known?.revision !== revision) {
      // With a gap between the revisions, a step to V3 and back may have come between two reads.
      const isQuiet = known?.state === 'clean' && revision === known.revision + 1
      // The records are counted by a later snapshot: those of the last writes may be missing in one that was read at the same time.
      const state = drained(partner, revision) ? 'drained' : 'left'
      progress.set(partner, { revision, state, isQuiet })
    } else if (known.state === 'left') {
      if (drained(partner, revision)) progress.set(partner, { ...known, state: 'drained' })
    } else if (
      known.state === 'drained' &&
      !snapshot.unsettled.has(partner) &&
      (known.isQuiet || !mayComeAgain(snapshot, partner, resendWindowMs))
    ) {
      progress.set(partner, { ...known, state: 'clean' })
    }
  }
  return {
    isClean,
    observe: (snapshot, settings) => {
      const before = cleanOnes(progress)
      const drained = drainedIn(snapshot)
      for (const [partner, { stage, revision }] of settings) {
        if (isServedByV2(stage)) step(partner, revision, snapshot, drained)
        else progress.delete(partner)
      }
      for (const partner of progress.keys()) if (!settings.has(partner)) progress.delete(partner)
      const after = cleanOnes(progress)
      return JSON.stringify(before) !== JSON.stringify(after)
    },
    list: () => cleanOnes(progress),
  }
}

/** True where V3 may have answered a batch of the partner so recently that its client sends it again. */
function mayComeAgain(
  { nowMs, partners }: RolloutSnapshot,
  partner: string,
  resendWindowMs: number,
): boolean {
  const state = partners.get(partner)?.state
  return state !== undefined && nowMs - state.sinceMs < resendWindowMs
}

function cleanOnes(progress: ReadonlyMap<string, Progress>): [string, number][] {
  return [...progress].flatMap(([partner, { revision, state }]) =>
    state === 'clean' ? [[partner, revision]] : [],
  )
}

type Drained = (partner: string, revision: number) => boolean

/** Tells whether every live instance serves a partner by a revision and has no write of V3 under way. */
function drainedIn({ acknowledgements, liveInstances }: RolloutSnapshot): Drained {
  const counts = new Map<string, number>()
  const live = new Set(liveInstances)
  const keyOf = (partner: string, revision: number): string => `${revision} ${partner}`
  for (const { instance, partner, revision, writesV3 } of acknowledgements) {
    if (writesV3 > 0 || !live.has(instance)) continue
    const key = keyOf(partner, revision)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return (partner, revision) => live.size > 0 && counts.get(keyOf(partner, revision)) === live.size
}
