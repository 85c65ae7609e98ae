import type { StagedPartner, StagedRequest } from '../live-stages.ts'
import type { Side, StageSetting } from '../stage.ts'
import type { SideOf } from './side-of.ts'

/** Numbers of writes on each side. */
export interface SideCounts {
  readonly v2: number
  readonly v3: number
}

interface Write {
  readonly partner: StagedPartner
  readonly request: StagedRequest
  readonly side: Side
}

/** The writes that were let in and are not over. */
export interface UnderWay {
  /** Counts a write until the returned function is called, which may be called again. */
  add(partner: StagedPartner, request: StagedRequest, side: Side): () => void
  count(partner: string): SideCounts
  /** Those of a partner that one of the settings would put on the other side, without an override: it holds a step forward up. */
  misplaced(partner: string, settings: readonly StageSetting[]): SideCounts
}

/** Creates the count; `onLeft` hears of each write that is over. */
export function createUnderWay(sideOf: SideOf, onLeft: (partner: string) => void): UnderWay {
  const writes = new Map<string, Set<Write>>()
  const countIf = (partner: string, isCounted: (write: Write) => boolean): SideCounts => {
    const counts = { v2: 0, v3: 0 }
    for (const write of writes.get(partner) ?? []) if (isCounted(write)) counts[write.side] += 1
    return counts
  }
  return {
    add: (partner, request, side) => {
      const write = { partner, request, side }
      const own = writes.get(partner.id) ?? new Set()
      writes.set(partner.id, own.add(write))
      return () => {
        if (!own.delete(write)) return
        if (own.size === 0 && writes.get(partner.id) === own) writes.delete(partner.id)
        onLeft(partner.id)
      }
    },
    count: (partner) => countIf(partner, () => true),
    misplaced: (partner, settings) =>
      countIf(partner, ({ partner: { id }, request, side }) =>
        settings.some((setting) => sideOf(setting, id, request) !== side),
      ),
  }
}
