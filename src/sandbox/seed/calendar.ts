import { dayMs, dayNumber, formatDay, ukOffsetMinutes } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { createTerms, schoolYearDates } from './terms.ts'
import type { DayKind } from './terms.ts'

/** A school day without marks, in the fixed weeks: there the code `-` is seen whatever the day of the run. */
export const unmarkedDay = dayNumber('2026-03-11')

/** The Monday on which the fixed two weeks of the sandbox begin, the same whatever the day of the run. */
export const fixedMonday = '2026-03-02'

/** One half of one calendar day. Both halves of every day exist, weekends and holidays included (service-facts 21). */
export interface Session {
  /** Twice the day number, plus one in the afternoon: sessions are numbered in order of time. */
  readonly number: number
  readonly day: number
  readonly half: 'AM' | 'PM'
  readonly externalId: string
  /** Start in milliseconds: 09:00 or 13:00 local time, so an hour earlier in UTC under British Summer Time. */
  readonly start: number
  /** The same as the service writes it: every row of a read shows it. */
  readonly startText: string
  readonly kind: DayKind
}

/** Every session of the sandbox, in order of time without a gap. */
export interface Calendar {
  readonly sessions: readonly Session[]
  /** The session of a number; undefined outside the calendar. */
  byNumber(number: number): Session | undefined
  /** The session with a guid in lower case. */
  byId(externalId: string): Session | undefined
  /** School sessions of the two weeks that begin on the day. */
  schoolSessions(firstDay: number, days: number): Session[]
}

/** Creates the calendar: from the first school year with marks (`firstYear`) to the end of the school year of `now`. */
export function createCalendar(ids: Identities, now: number, firstYear: number): Calendar {
  const today = Math.floor(now / dayMs)
  const fixed = dayNumber(fixedMonday)
  const first = dayNumber(`${firstYear}-09-01`)
  const last = dayNumber(schoolYearDates(Math.max(today, fixed)).last)
  const kindOf = createTerms()
  const sessions: Session[] = []
  for (let day = first; day <= last; day += 1) {
    const kind = kindOf(day)
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
    byNumber: (number) => sessions[number - base],
    byId: (externalId) => byGuid.get(externalId),
    schoolSessions: (firstDay, days) =>
      sessions
        .slice(Math.max(0, firstDay * 2 - base), Math.max(0, (firstDay + days) * 2 - base))
        .filter((session) => session.kind === 'school'),
  }
}
