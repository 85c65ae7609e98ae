import { createRandom, type Random } from '../random.ts'
import { packFlags } from '../store/marks.ts'
import { type Calendar, type Session, unmarkedDay } from './calendar.ts'
import type { AttendanceCode, CodeTable } from './codes.ts'
import type { Roster } from './pupils.ts'
import type { DatabaseSync } from 'node:sqlite'
import { dayNumber } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { contentMark, readDay, storeFact, transact } from '../store/database.ts'

/** The codes of a morning and an afternoon, and how many of 1,000 days in a primary school have these codes (service-facts). */
const patterns: readonly (readonly [am: string, pm: string, perThousand: number])[] = [
  ['/', '\\', 934],
  ['L', '\\', 11],
  ['V', 'V', 2],
  ['B', 'B', 1],
  ['P', '\\', 1],
  ['I', 'I', 24],
  ['/', 'I01', 3],
  ['M', '\\', 6],
  ['/', 'M', 3],
  ['C', 'C', 2],
  ['G', 'G', 5],
  ['O', 'O', 3],
  ['U', '\\', 2],
  ['R', 'R', 1],
  ['E', 'E', 1],
  ['/', 'N', 1],
]

/** Creates the function that draws the marks of a learner for a day. `minutesLate` is null unless the learner is late in the morning. */
function createRegister(codes: CodeTable) {
  const late = codes.named('L').number
  const afterClose = codes.named('U').number
  const total = patterns.reduce((sum, [, , weight]) => sum + weight, 0)
  // Each thousandth has one slot, so that a random number can be used as an index.
  const slots = patterns.flatMap(([am, pm, weight]) =>
    Array.from({ length: weight }, () => ({ am: codes.named(am).number, pm: codes.named(pm).number })),
  )
  const usual = { am: codes.named('/').number, pm: codes.named('\\').number }
  return (random: Random) => {
    const { am, pm } = slots[random.below(total)] ?? usual
    if (am === late) return { am, pm, minutesLate: 1 + random.below(25) }
    return { am, pm, minutesLate: am === afterClose ? 31 + random.below(60) : null }
  }
}

interface RegisterSeed {
  readonly seed: number
  readonly roster: Roster
  readonly calendar: Calendar
  readonly codes: CodeTable
  readonly onProgress: (share: number) => void
}

/** The time from the beginning of a session to the time at which the teacher completes the register. */
const registerMs = 20 * 60_000

/**
 * Writes the marks of all registers from day `first` to day `last`. Existing marks stay unchanged. One SQL statement per learner first
 * writes the marks of a usual day, which takes a sixth of the time of one statement per mark. The other marks are updated afterwards.
 */
function fillRegisters(
  database: DatabaseSync,
  { seed, roster, calendar, codes, onProgress }: RegisterSeed,
  first: number,
  last: number,
): void {
  const sessions = calendar.schoolSessions(first, last - first + 1).filter(({ day }) => day !== unmarkedDay)
  if (sessions.length === 0) return
  const mornings = sessions.filter(({ half }) => half === 'AM')
  const usual = { AM: codes.named('/'), PM: codes.named('\\') }
  createRegisterTable(database, sessions, usual)
  const fill = database.prepare(
    `INSERT OR IGNORE INTO mark
     SELECT ?1, session, 0, code, 1, NULL, NULL, recorded_on, ?2, NULL, NULL, 0 FROM temp.register
     WHERE session BETWEEN ?3 AND ?4`,
  )
  const change = database.prepare(
    'UPDATE mark SET code = ?, flags = ?, minutes_late = ? WHERE learner = ? AND session = ? AND copy = 0 AND seq = 0',
  )
  const markDay = createRegister(codes)
  const mark = (learner: number, session: number, code: number, minutesLate: number | null): void => {
    const category = codes.byNumber(code)?.category
    const flags = packFlags(category === 'present', category === 'absent')
    change.run(code, flags, minutesLate, learner, session)
  }
  for (const { number: learner, admissionDay, leavingDay, entryYear, form } of roster.entries) {
    const teacher = 1 + ((entryYear * 4 + form.charCodeAt(0)) % 24)
    fill.run(learner, teacher, admissionDay * 2, leavingDay * 2 + 1)
    for (const { number, day } of mornings) {
      if (day < admissionDay || day > leavingDay) continue
      // The random numbers depend only on the seed, the learner and the day, so the marks are the same on any date and at any scale.
      const marks = markDay(createRandom(seed, `register ${learner} ${day}`))
      if (marks.am !== usual.AM.number) mark(learner, number, marks.am, marks.minutesLate)
      if (marks.pm !== usual.PM.number) mark(learner, number + 1, marks.pm, null)
    }
    onProgress(learner / roster.entries.length)
  }
  database.exec('DROP TABLE temp.register')
}

function createRegisterTable(
  database: DatabaseSync,
  sessions: readonly Session[],
  usual: Readonly<Record<Session['half'], AttendanceCode>>,
): void {
  database.exec('CREATE TEMP TABLE register (session INTEGER PRIMARY KEY, code INTEGER, recorded_on INTEGER)')
  const open = database.prepare('INSERT INTO temp.register VALUES (?, ?, ?)')
  for (const { number, half, start } of sessions) open.run(number, usual[half].number, start + registerMs)
}

const staffCount = 24

/** Fills an empty database with staff and with the registers up to the day before `today`, in one transaction. */
export function seedDatabase(
  database: DatabaseSync,
  source: RegisterSeed & { readonly ids: Identities },
  today: number,
  content: string,
): void {
  const insertActor = database.prepare('INSERT INTO actor VALUES (?, ?)')
  transact(database, () => {
    for (let staff = 1; staff <= staffCount; staff += 1)
      insertActor.run(staff, source.ids.guid('user', staff))
    closeRegisters(database, source, today)
    storeFact(database, 'planned', today)
    storeFact(database, 'content', contentMark(content))
  })
}

/** Fills in the registers of the days since the last call, up to the day before `today`. */
export function closeRegisters(database: DatabaseSync, source: RegisterSeed, today: number): void {
  const marked = readDay(database, 'marked')
  const first = marked === undefined ? dayNumber(`${source.roster.firstYear}-09-01`) : marked + 1
  if (today <= first) return
  transact(database, () => {
    fillRegisters(database, source, first, today - 1)
    storeFact(database, 'marked', today - 1)
  })
}

/**
 * Fills in closed registers again after client writes were undone, because a session that a client marked before its register closed got no
 * seeded mark.
 */
export function refillRegisters(
  database: DatabaseSync,
  source: RegisterSeed,
  first: number,
  last: number,
): void {
  const closed = Math.min(last, readDay(database, 'marked') ?? -1)
  if (closed < first) return
  transact(database, () => fillRegisters(database, { ...source, onProgress: () => undefined }, first, closed))
}
