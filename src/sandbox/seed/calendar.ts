import {
  dayMs,
  dayNumber,
  dayOf,
  formatDay,
  mondayOf,
  schoolYearOf,
  ukOffsetMinutes,
  weekday,
} from '../dates.ts'
import type { Identities } from '../identity.ts'

export type DayKind = 'school' | 'weekend' | 'holiday' | 'training' | 'closure'

interface Span {
  readonly first: number
  readonly last: number
}

interface SchoolYear {
  readonly terms: readonly Span[]
  readonly halfTerms: readonly Span[]
  readonly holidays: ReadonlySet<number>
  readonly training: ReadonlySet<number>
}

/** Days on which the whole school closed unexpectedly, because of a bank holiday at short notice or snow. */
const closures = new Set(['2022-09-19', '2026-03-12'].map(dayNumber))

const onOrAfter = (isoDate: string, wanted: number): number => {
  const day = dayNumber(isoDate)
  return day + ((wanted - weekday(day) + 7) % 7)
}
const onOrBefore = (isoDate: string, wanted: number): number => {
  const day = dayNumber(isoDate)
  return day - ((weekday(day) - wanted + 7) % 7)
}
const workingDay = (isoDate: string, step: 1 | -1): number => {
  let day = dayNumber(isoDate)
  while (weekday(day) > 4) day += step
  return day
}
const week = (monday: number): Span => ({ first: monday, last: monday + 4 })

/** Returns an English school year with at least 190 school days, five training days, and a week of holiday in the middle of each term. */
function schoolYear(year: number): SchoolYear {
  const autumn = { first: workingDay(`${year}-09-02`, 1), last: workingDay(`${year}-12-20`, -1) }
  const spring = { first: workingDay(`${year + 1}-01-03`, 1), last: workingDay(`${year + 1}-03-31`, -1) }
  const summer = { first: workingDay(`${year + 1}-04-13`, 1), last: workingDay(`${year + 1}-07-22`, -1) }
  const march = mondayOf(dayNumber(`${year + 1}-03-12`))
  return {
    terms: [autumn, spring, summer],
    halfTerms: [
      week(onOrBefore(`${year}-10-31`, 0)),
      week(mondayOf(dayNumber(`${year + 1}-02-16`))),
      week(onOrBefore(`${year + 1}-05-31`, 0)),
    ],
    holidays: new Set([onOrAfter(`${year + 1}-05-01`, 0)]),
    training: new Set([autumn.first, autumn.last, spring.first, march + 4, summer.last]),
  }
}

/** A cache of school years by their first calendar year. */
const schoolYears = new Map<number, SchoolYear>()

export function dayKindOf(day: number): DayKind {
  if (weekday(day) > 4) return 'weekend'
  const start = schoolYearOf(day)
  const year = schoolYears.get(start) ?? schoolYear(start)
  schoolYears.set(start, year)
  const within = (span: Span): boolean => day >= span.first && day <= span.last
  if (!year.terms.some(within) || year.halfTerms.some(within) || year.holidays.has(day)) return 'holiday'
  if (year.training.has(day)) return 'training'
  return closures.has(day) ? 'closure' : 'school'
}

export function schoolDayBefore(day: number): number {
  let found = day
  while (dayKindOf(found) !== 'school') found -= 1
  return found
}

export function schoolDayAfter(day: number): number {
  let found = day + 1
  while (dayKindOf(found) !== 'school') found += 1
  return found
}

/** Returns the last school days of the `count` terms that ended before a day, latest first. */
export function lastDaysOfTerms(day: number, count: number): number[] {
  const year = schoolYearOf(day)
  return [year, year - 1]
    .flatMap((start) => [`${start + 1}-08-31`, `${start + 1}-04-10`, `${start}-12-31`])
    .map((date) => schoolDayBefore(dayNumber(date)))
    .filter((last) => last < day)
    .slice(0, count)
}

/** A school day without marks within the fixed weeks, so that tests find the code `-` on any date. */
export const unmarkedDay = dayNumber('2026-03-11')

/** The Monday on which the two fixed weeks of the sandbox begin. The fixed weeks do not depend on the current date. */
export const fixedMonday = '2026-03-02'

/** A session, which is one half of a calendar day. Every day has two sessions, including weekends and holidays (service-facts 21). */
export interface Session {
  /** Twice the day number, plus one for an afternoon session, so that the numbers are in order of time. */
  readonly number: number
  readonly day: number
  readonly half: 'AM' | 'PM'
  readonly externalId: string
  /** The start in milliseconds since 1970: 09:00 or 13:00 local time, which is one hour earlier in UTC during British Summer Time. */
  readonly start: number
  /** The start as text. The text is computed once, because every row of a read contains it. */
  readonly startText: string
  readonly kind: DayKind
}

export type Calendar = ReturnType<typeof createCalendar>

/** Creates the calendar, which ends with the school year of `now`. The sessions are in order of time without gaps. */
export function createCalendar(ids: Identities, now: number, firstYear: number) {
  const first = dayNumber(`${firstYear}-09-01`)
  const last = dayNumber(`${schoolYearOf(Math.max(dayOf(now), dayNumber(fixedMonday))) + 1}-08-31`)
  const sessions: Session[] = []
  for (let day = first; day <= last; day += 1) {
    const kind = dayKindOf(day)
    const ahead = ukOffsetMinutes(day) / 60
    const date = formatDay(day)
    for (const [offset, half, hour] of [
      [0, 'AM', 9],
      [1, 'PM', 13],
    ] as const) {
      const number = day * 2 + offset
      const externalId = ids.guid('session', number)
      const start = day * dayMs + (hour - ahead) * 3_600_000
      const startText = `${date}T${String(hour - ahead).padStart(2, '0')}:00:00Z`
      sessions.push({ number, day, half, externalId, start, startText, kind })
    }
  }
  const byGuid = new Map(sessions.map((session) => [session.externalId, session]))
  const base = first * 2
  return {
    sessions,
    byNumber: (number: number): Session | undefined => sessions[number - base],
    /** Returns the session with this guid, or `undefined` if there is none. The guid must be in lower case. */
    byId: (externalId: string): Session | undefined => byGuid.get(externalId),
    /** Lists the sessions on school days among the `days` days from `firstDay` on. */
    schoolSessions: (firstDay: number, days: number): Session[] =>
      sessions
        .slice(Math.max(0, firstDay * 2 - base), Math.max(0, (firstDay + days) * 2 - base))
        .filter((session) => session.kind === 'school'),
  }
}
