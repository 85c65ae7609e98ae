import type { Acknowledgement, RolloutSnapshot } from '../store/rollout-store.ts'
import type { UnderWay } from './under-way.ts'
import type { RevisedSetting, StageView } from './view.ts'

/**
 * What this instance has to say of each partner: the revision that it serves by, the change that it holds writes for, and the writes
 * under way that are not where they belong by these.
 */
export function acknowledgementsOf(
  view: StageView,
  settings: ReadonlyMap<string, RevisedSetting>,
  underWay: UnderWay,
): readonly Acknowledgement[] {
  return [...settings].map(([partner, setting]) => {
    const pending = view.partners.get(partner)?.pending
    const { v2, v3 } = underWay.misplaced(partner, pending === undefined ? [setting] : [setting, pending])
    return {
      partner,
      revision: setting.revision,
      pendingRevision: pending?.revision,
      writesV2: v2,
      writesV3: v3,
    }
  })
}

/** What the store is known to have of one instance, so that only what is new is written. */
export interface Acknowledged {
  /** Takes what a snapshot shows; one that was asked for before the last `said` shows less than is known. */
  observe(snapshot: RolloutSnapshot, instance: number | undefined, askedMs: number): void
  unsaid(instance: number, rows: readonly Acknowledgement[]): readonly Acknowledgement[]
  /** The store has the rows; at this time by the monotonic clock. */
  said(instance: number, rows: readonly Acknowledgement[], atMs: number): void
}

/** Creates the memory. A new number of the lease has said nothing yet. */
export function createAcknowledged(): Acknowledged {
  let own: number | undefined
  let lastMs = Number.NEGATIVE_INFINITY
  let rows = new Map<string, Acknowledgement>()
  const beginWith = (instance: number): void => {
    if (own === instance) return
    own = instance
    rows = new Map()
    lastMs = Number.NEGATIVE_INFINITY
  }
  return {
    observe: ({ acknowledgements }, instance, askedMs) => {
      if (instance === undefined) return
      beginWith(instance)
      if (askedMs < lastMs) return
      const found = acknowledgements.filter((row) => row.instance === instance)
      rows = new Map(found.map((row) => [row.partner, row]))
    },
    unsaid: (instance, wanted) => {
      beginWith(instance)
      return wanted.filter((row) => !isSame(rows.get(row.partner), row))
    },
    said: (instance, said, atMs) => {
      if (own !== instance) return
      lastMs = atMs
      for (const row of said) rows.set(row.partner, row)
    },
  }
}

function isSame(one: Acknowledgement | undefined, other: Acknowledgement): boolean {
  return (
    one?.revision === other.revision &&
    one.pendingRevision === other.pendingRevision &&
    one.writesV2 === other.writesV2 &&
    one.writesV3 === other.writesV3
  )
}
