import type { DatabaseSync } from 'node:sqlite'
import { createRandom } from '../random.ts'
import { packFlags } from '../store/mark.ts'
import type { Calendar, Session } from './calendar.ts'
import type { CodeTable } from './code-table.ts'
import type { Place } from './plan.ts'
import { createRegister } from './register.ts'

/** A closed range of days whose registers are filled in. */
export interface MarkedDays {
  readonly first: number
  readonly last: number
}

/** What the marks are made for, and where they go. */
export interface MarkSeed {
  readonly seed: number
  readonly places: readonly Place[]
  readonly calendar: Calendar
  readonly codes: CodeTable
  readonly marked: readonly MarkedDays[]
  /** Called after each learner with the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
}

/** Registers are closed twenty minutes after the session begins. */
const registerMs = 20 * 60_000

/** Writes the marks that the teachers of the synthetic school recorded. Returns how many. */
export function seedMarks(database: DatabaseSync, plan: MarkSeed): number {
  const insert = database.prepare(
    'INSERT OR IGNORE INTO mark VALUES (?, ?, 0, ?, ?, ?, NULL, ?, ?, NULL, NULL, 0)',
  )
  const markDay = createRegister(plan.codes)
  const days = plan.marked.map(({ first, last }) => plan.calendar.schoolSessions(first, last - first + 1))
  let count = 0
  const record = (place: Place, session: Session, code: number, minutesLate: number | null): void => {
    const category = plan.codes.byNumber(code)?.category
    const flags = packFlags(category === 'present', category === 'absent')
    const teacher = 1 + ((place.year * 4 + place.form.charCodeAt(0)) % 24)
    insert.run(place.learner, session.number, code, flags, minutesLate, session.start + registerMs, teacher)
    count += 1
  }
  for (const place of plan.places) {
    const last = place.leavingDay ?? Number.MAX_SAFE_INTEGER
    for (const sessions of days) {
      for (const session of sessions) {
        if (session.half === 'PM' || session.day < place.admissionDay || session.day > last) continue
        // A day's marks depend on the learner and the day alone: other weeks and scales do not change them.
        const marks = markDay(createRandom(plan.seed, `register ${place.learner} ${session.day}`))
        record(place, session, marks.am, marks.minutesLate)
        const afternoon = plan.calendar.byNumber(session.number + 1)
        if (afternoon !== undefined) record(place, afternoon, marks.pm, null)
      }
    }
    plan.onProgress(place.learner / plan.places.length)
  }
  return count
}
