import { createRandom } from '../random.ts'
import type { Face, Mark } from '../store/mark.ts'
import type { MarkStore } from '../store/marks.ts'
import type { DifferencePlan } from './difference-plan.ts'
import type { Place } from './draw-places.ts'

/** A write that one face does not show before its time. */
export interface LateWrite extends Place {
  readonly seq: number
  readonly delayMs: number
  /** Monotonic time in milliseconds. */
  readonly visibleMs: number
}

/** The writes that replicate late to one face. */
export interface LateWrites {
  /** A write of a face, as soon as it is stored. */
  add(face: Face, seq: number, place: Place): void
  /** Whether the face does not show the write yet. */
  hides(seq: number): boolean
  /** The mark as the face shows it; undefined: none yet. */
  visible(mark: Mark, marks: MarkStore): Mark | undefined
  list(): readonly LateWrite[]
}

/** So many writes are remembered for the list; older ones have long been seen. */
const maxListed = 100_000

/** Creates the late writes of a plan; `delayOf` has the delays of chosen rows. `nowMs` is monotonic. */
export function createLateWrites(
  { face: shownBy, late, seed }: DifferencePlan,
  delayOf: (place: Place) => number | undefined,
  nowMs: () => number,
): LateWrites {
  const held = new Map<number, LateWrite>()
  const drawDelay = (seq: number): number | undefined => {
    if (late === undefined) return undefined
    const random = createRandom(seed, `late ${seq}`)
    return random.chance(late.share) ? late.delayMs + random.below(late.spreadMs + 1) : undefined
  }
  const hides = (seq: number): boolean => (held.get(seq)?.visibleMs ?? 0) > nowMs()
  return {
    add: (face, seq, place) => {
      // The number of a write that was rolled back is given again.
      held.delete(seq)
      const delayMs = face === shownBy ? undefined : (delayOf(place) ?? drawDelay(seq))
      if (delayMs === undefined) return
      held.set(seq, { ...place, seq, delayMs, visibleMs: nowMs() + delayMs })
      const [oldest] = held.keys()
      if (held.size > maxListed && oldest !== undefined) held.delete(oldest)
    },
    hides,
    visible: (mark, marks) => {
      let shown: Mark | undefined = mark
      while (shown !== undefined && hides(shown.seq)) shown = marks.before(shown, shown.seq - 1)
      return shown
    },
    list: () => [...held.values()],
  }
}
