import type { DatabaseSync } from 'node:sqlite'
import { createRandoms } from '../random.ts'
import { packFlags } from '../store/mark.ts'
import type { Calendar, Session } from './calendar.ts'
import { unmarkedDay } from './calendar.ts'
import type { CodeTable } from './code-table.ts'
import type { Place } from './plan.ts'
import { createRegister } from './register.ts'

/** The input of the marks, and their destination. */
export interface MarkSeed {
  readonly seed: number
  readonly places: readonly Place[]
  readonly calendar: Calendar
  readonly codes: CodeTable
  /** The first and last day whose registers are filled in. */
  readonly first: number
  readonly last: number
  /** Called after each learner with the share that is done, 0 to 1. */
  readonly onProgress: (share: number) => void
}

/** Registers are closed twenty minutes after the session begins. */
const registerMs = 20 * 60_000

/**
 * Writes the marks that the teachers of the synthetic school recorded; a mark that is there already stays. Most are those of a
 * usual day, which SQLite fills in: that takes a sixth of the time of one statement for each.
 */
export function seedMarks(database: DatabaseSync, plan: MarkSeed): void {
  const { seed, places, calendar, codes, first, last } = plan
  const sessions = calendar.schoolSessions(first, last - first + 1).filter(({ day }) => day !== unmarkedDay)
  if (sessions.length === 0) return
  const mornings = sessions
    .filter(({ half }) => half === 'AM')
    .map(({ number, day }) => ({ number, day, name: String(day) }))
  const usual = { AM: codes.named('/'), PM: codes.named('\\') }
  openRegisters(database, sessions, usual)
  const fill = database.prepare(
    `INSERT OR IGNORE INTO mark
     SELECT ?1, session, 0, code, 1, NULL, NULL, recorded_on, ?2, NULL, NULL, 0 FROM temp.register
     WHERE session BETWEEN ?3 AND ?4`,
  )
  const change = database.prepare(
    'UPDATE mark SET code = ?, flags = ?, minutes_late = ? WHERE learner = ? AND session = ? AND copy = 0 AND seq = 0',
  )
  const markDay = createRegister(codes)
  const mark = (place: Place, session: number, code: number, minutesLate: number | null): void => {
    const category = codes.byNumber(code)?.category
    const flags = packFlags(category === 'present', category === 'absent')
    change.run(code, flags, minutesLate, place.learner, session)
  }
  for (const place of places) {
    const { learner, admissionDay, leavingDay } = place
    const teacher = 1 + ((place.entryYear * 4 + place.form.charCodeAt(0)) % 24)
    fill.run(learner, teacher, admissionDay * 2, leavingDay * 2 + 1)
    const randomOf = createRandoms(seed, `register ${learner} `)
    for (const { number, day, name } of mornings) {
      if (day < admissionDay || day > leavingDay) continue
      // A day's marks depend on the learner and the day alone: other days and scales do not change them.
      const marks = markDay(randomOf(name))
      if (marks.am !== usual.AM.number) mark(place, number, marks.am, marks.minutesLate)
      if (marks.pm !== usual.PM.number) mark(place, number + 1, marks.pm, null)
    }
    plan.onProgress(learner / places.length)
  }
  database.exec('DROP TABLE temp.register')
}

/** Writes the registers to be filled into a table of their own. */
function openRegisters(
  database: DatabaseSync,
  sessions: readonly Session[],
  usual: Readonly<Record<Session['half'], { readonly number: number }>>,
): void {
  database.exec('CREATE TEMP TABLE register (session INTEGER PRIMARY KEY, code INTEGER, recorded_on INTEGER)')
  const open = database.prepare('INSERT INTO temp.register VALUES (?, ?, ?)')
  for (const { number, half, start } of sessions) open.run(number, usual[half].number, start + registerMs)
}
