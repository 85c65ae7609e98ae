import type { DatabaseSync } from 'node:sqlite'
import { dayMs, dayNumber } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { markSeeded, transact } from '../store/database.ts'
import type { Calendar } from './calendar.ts'
import { fixedMonday, weeksAround } from './calendar.ts'
import type { CodeTable } from './code-table.ts'
import { seedDocuments } from './documents/seed-documents.ts'
import { seedMarks } from './marks.ts'
import type { SchoolPlan } from './plan.ts'
import type { Pupil } from './pupil.ts'

/** What the database is filled from. */
export interface SeedSource {
  readonly seed: number
  readonly plan: SchoolPlan
  readonly pupils: readonly Pupil[]
  readonly ids: Identities
  readonly calendar: Calendar
  readonly codes: CodeTable
  /** Milliseconds. */
  readonly now: number
  readonly onProgress: (share: number) => void
}

/** Staff who take registers; the seeded marks are theirs. */
const staffCount = 24

/** Registers of the fixed weeks are filled in up to the Tuesday of the second; from Wednesday on, marks are missing. */
const fixedMarkedDays = 9

/** Fills an empty database: learners, staff, the entities of the learner domains and marks, in one transaction. */
export function seedDatabase(database: DatabaseSync, source: SeedSource, content: string): void {
  const { plan, ids, calendar, codes, now } = source
  const insertLearner = database.prepare('INSERT INTO learner VALUES (?, ?, ?, ?, ?)')
  const insertActor = database.prepare('INSERT INTO actor VALUES (?, ?)')
  const fixed = dayNumber(fixedMonday)
  const first = plan.firstYear === undefined ? fixed : dayNumber(`${plan.firstYear}-09-01`)
  const today = Math.floor(now / dayMs)
  transact(database, () => {
    for (let staff = 1; staff <= staffCount; staff += 1) insertActor.run(staff, ids.guid('user', staff))
    for (const place of plan.places) {
      const { learner, admissionDay, leavingDay, state } = place
      insertLearner.run(learner, ids.guid('learner', learner), admissionDay, leavingDay, state)
    }
    seedDocuments(database, { seed: source.seed, ids, pupils: source.pupils })
    seedMarks(database, {
      seed: source.seed,
      places: plan.places,
      calendar,
      codes,
      marked: [
        { first, last: fixed + fixedMarkedDays - 1 },
        // Registers of today are still open.
        { first: weeksAround(now), last: today - 1 },
      ],
      onProgress: source.onProgress,
    })
    markSeeded(database, content)
  })
}
