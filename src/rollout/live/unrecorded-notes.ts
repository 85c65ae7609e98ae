import type { WallClock } from '../../clock.ts'
import { readClocks, type Sighting } from './sighting.ts'

/** When V2 was last given a write of a partner that the journal does not know, until the store has been told. */
export interface UnrecordedNotes {
  add(partner: string): void
  /** Notes all in the store. Rejects as `note` does; what was not noted stays. */
  flush(note: (partner: string, agoMs: number) => Promise<void>): Promise<void>
}

export function createUnrecordedNotes(clock: WallClock): UnrecordedNotes {
  const last = new Map<string, Sighting>()
  return {
    add: (partner) => void last.set(partner, readClocks(clock)),
    flush: async (note) => {
      for (const [partner, at] of last) {
        // By the clock that says less: a note that is too new only delays a step forward.
        const agoMs = Math.max(0, Math.min(clock.nowMs() - at.monotonicMs, clock.wallMs() - at.wallMs))
        await note(partner, agoMs)
        if (last.get(partner) === at) last.delete(partner)
      }
    },
  }
}
