import { AdapterError } from '../../errors.ts'
import type { Face } from '../store/mark.ts'
import type { DifferencePlan } from './difference-plan.ts'
import { drawPlaces } from './draw-places.ts'
import type { DrawSource, Place, PlacedDifference } from './draw-places.ts'
import { createFaceDifferences } from './face-differences.ts'
import type { FaceDifferences, MarkSource } from './face-differences.ts'
import { createLateWrites } from './late-writes.ts'
import type { LateWrite, LateWrites } from './late-writes.ts'

/** The differences that are set, and where they are. */
export interface SetDifferences {
  readonly plan: DifferencePlan
  readonly placed: readonly PlacedDifference[]
  readonly late: readonly LateWrite[]
  readonly shown: FaceDifferences
}

/** What one face shows otherwise than the store has it; only reads of it change. */
export interface Differences {
  /** Replaces all differences. Errors: `ADP_USAGE` for unknown ids, and where too few marks can be drawn. */
  set(plan: DifferencePlan): void
  clear(): void
  current(): SetDifferences | undefined
  /** The differences of a face; undefined: it shows what is stored. */
  on(face: Face): FaceDifferences | undefined
  /** Notes a write as soon as it is stored. */
  wrote(face: Face, seq: number, place: Place): void
}

interface Active extends Omit<SetDifferences, 'late'> {
  readonly late: LateWrites
}

/** Creates the differences of a store, with none set. `nowMs` is monotonic. */
export function createDifferences(
  source: DrawSource & MarkSource,
  nowMs: () => number = () => performance.now(),
): Differences {
  let active: Active | undefined
  return {
    set: (plan) => {
      const { chosen, delays } = choosePlaces(source, plan)
      const placed = [...chosen, ...drawPlaces(source, plan)]
      const late = createLateWrites(plan, (place) => delays.get(keyOf(place)), nowMs)
      active = { plan, placed, late, shown: createFaceDifferences(source, plan, placed, late) }
    },
    clear: () => {
      active = undefined
    },
    current: () => active && { ...active, late: active.late.list() },
    on: (face) => (active?.plan.face === face ? active.shown : undefined),
    wrote: (face, seq, place) => active?.late.add(face, seq, place),
  }
}

const keyOf = ({ learner, session }: Place): string => `${learner} ${session}`

/** The chosen rows by their places, and the delays of those that are late. */
function choosePlaces(
  { roster, calendar }: DrawSource,
  { rows }: DifferencePlan,
): { chosen: PlacedDifference[]; delays: ReadonlyMap<string, number> } {
  const chosen: PlacedDifference[] = []
  const delays = new Map<string, number>()
  rows.forEach(({ learner, event, kind, delayMs }, index) => {
    const entry = roster.byId(learner)
    const session = calendar.byId(event)
    if (entry === undefined) throw unknown(`rows.${index}.learner`, 'learner')
    if (session === undefined) throw unknown(`rows.${index}.event`, 'event')
    const place = { learner: entry.number, session: session.number }
    if (kind === 'late') delays.set(keyOf(place), delayMs)
    else if (kind === 'order') chosen.push({ ...place, kind, session: place.session - (place.session % 2) })
    else chosen.push({ ...place, kind })
  })
  return { chosen, delays }
}

const unknown = (target: string, what: string): AdapterError =>
  new AdapterError('ADP_USAGE', 'The differences cannot be read.', {
    details: [{ code: 'ADP_USAGE', target, message: `There is no ${what} with this id.` }],
  })
