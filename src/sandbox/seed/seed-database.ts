import type { DatabaseSync } from 'node:sqlite'
import { dayNumber } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { keepDay, markSeeded, readDay, transact } from '../store/database.ts'
import type { Calendar } from './calendar.ts'
import type { CodeTable } from './code-table.ts'
import { seedMarks } from './marks.ts'
import type { SchoolPlan } from './plan.ts'

/** The input of the database. */
export interface SeedSource {
  readonly seed: number
  readonly plan: SchoolPlan
  readonly ids: Identities
  readonly calendar: Calendar
  readonly codes: CodeTable
  /** The number of the day on which the sandbox opens. */
  readonly today: number
  readonly onProgress: (share: number) => void
}

/** Staff who take registers; the seeded marks are theirs. */
const staffCount = 24

/** Fills an empty database: learners, staff and marks, in one transaction. */
export function seedDatabase(database: DatabaseSync, source: SeedSource, content: string): void {
  const { plan, ids } = source
  const insertLearner = database.prepare('INSERT INTO learner VALUES (?, ?, ?, ?)')
  const insertActor = database.prepare('INSERT INTO actor VALUES (?, ?)')
  transact(database, () => {
    for (let staff = 1; staff <= staffCount; staff += 1) insertActor.run(staff, ids.guid('user', staff))
    for (const { learner, admissionDay, leavingDay } of plan.places)
      insertLearner.run(learner, ids.guid('learner', learner), admissionDay, leavingDay)
    fillRegisters(database, source)
    keepDay(database, 'planned', source.today)
    markSeeded(database, content)
  })
}

/** Fills in the registers that are closed by now and were not yet; those of today are still open. */
export function fillRegisters(database: DatabaseSync, source: SeedSource): void {
  const { seed, plan, calendar, codes, today, onProgress } = source
  const marked = readDay(database, 'marked')
  const first = marked === undefined ? dayNumber(`${plan.firstYear}-09-01`) : marked + 1
  const last = today - 1
  if (last < first) return
  transact(database, () => {
    seedMarks(database, { seed, places: plan.places, calendar, codes, first, last, onProgress })
    keepDay(database, 'marked', last)
  })
}

/**
 * Fills in the registers of some days again, as far as they are closed: those of a session that a client marked first were left
 * to it, and are missing once its mark is undone.
 */
export function refillRegisters(
  database: DatabaseSync,
  { seed, plan, calendar, codes }: SeedSource,
  days: { readonly first: number; readonly last: number },
): void {
  const last = Math.min(days.last, readDay(database, 'marked') ?? -1)
  if (last < days.first) return
  const { places } = plan
  transact(database, () => {
    seedMarks(database, {
      seed,
      places,
      calendar,
      codes,
      first: days.first,
      last,
      onProgress: () => undefined,
    })
  })
}
