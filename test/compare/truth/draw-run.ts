import { createRandom } from '../../../src/sandbox/random.ts'
import { type DrawnKind, drawnKinds } from './differ-faces.ts'
import { daysOf, firstDay, lastDay } from './prepare-school.ts'

/** A run of the campaign: its scope, and the differences between the two interfaces. */
export interface DrawnRun {
  readonly seed: number
  readonly face: 'V2' | 'V3'
  readonly from: string
  readonly to: string
  /** The number of learners, from the first, or `undefined` for all. */
  readonly learners: number | undefined
  /** The number of differences to draw. */
  readonly count: number
  readonly kinds: readonly DrawnKind[]
  /** True to read V2 twice. */
  readonly noise: boolean
  /** True if some records differ in two fields. */
  readonly combined: boolean
  /** True if both services fail at times with 429, 503 or a broken connection. */
  readonly failing: boolean
}

/** Draws a run over about `size` records at most, of a school that has `school` learners. */
export function drawRun(seed: number, size: number, school: number): DrawnRun {
  const random = createRandom(seed, 'compare run')
  const days = daysOf(firstDay, lastDay)
  // With two sessions on five of seven days and the holidays left out, a learner has about 1.2 marks for each calendar day.
  const perDay = (learners: number): number => learners * 1.2
  const fewest = Math.min(school, Math.ceil(size / perDay(1) / days.length))
  const learners = Math.min(school, fewest + random.below(Math.max(1, Math.min(school, size / 2) - fewest)))
  const span = Math.max(1, Math.min(days.length, Math.round(size / perDay(learners))))
  const first = random.below(days.length - span + 1)
  return {
    seed,
    face: random.chance(0.5) ? 'V2' : 'V3',
    from: days[first] ?? firstDay,
    to: days[first + span - 1] ?? lastDay,
    learners: learners === school ? undefined : learners,
    count: seed % 10 === 9 ? 0 : random.below(Math.min(200, Math.ceil(size / 8)) + 1),
    kinds: drawKinds(random.next() < 0.5 ? drawnKinds.length : 1 + random.below(6), seed),
    // These options depend on the seed and not on chance, so that even a short campaign includes each of them.
    noise: seed % 4 === 0,
    combined: seed % 5 < 2,
    failing: seed % 8 === 1,
  }
}

/** Draws some kinds in random order. */
function drawKinds(count: number, seed: number): DrawnKind[] {
  const random = createRandom(seed, 'kinds')
  return drawnKinds
    .map((kind) => ({ kind, place: random.next() }))
    .sort((one, other) => one.place - other.place)
    .slice(0, count)
    .map(({ kind }) => kind)
}

/** Draws the number of records: 100 to 10,000, evenly over magnitudes, and the maximum in every sixtieth run. */
export function sizeOfRun(seed: number, run: number, largest: number): number {
  if (run % 60 === 59) return largest
  const random = createRandom(seed + run, 'size')
  return Math.min(largest, Math.round(100 * 100 ** random.next()))
}
