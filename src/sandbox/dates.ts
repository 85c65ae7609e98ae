export const dayMs = 86_400_000

/** Returns the number of a calendar day, counted in days since 1970-01-01. */
export function dayNumber(isoDate: string): number {
  return Math.floor(Date.parse(`${isoDate.slice(0, 10)}T00:00:00Z`) / dayMs)
}

export function dayOf(ms: number): number {
  return Math.floor(ms / dayMs)
}

export function formatDay(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}

/** Returns the day of the week, from 0 (Monday) to 6 (Sunday). */
export function weekday(day: number): number {
  return (day + 3) % 7
}

export function mondayOf(day: number): number {
  return day - weekday(day)
}

/** Returns the calendar year in which the school year of a day began, on 1 September. */
export function schoolYearOf(day: number): number {
  const date = new Date(day * dayMs)
  return date.getUTCMonth() >= 8 ? date.getUTCFullYear() : date.getUTCFullYear() - 1
}

function lastSunday(year: number, month: number): number {
  const last = Date.UTC(year, month, 0) / dayMs
  return last - ((weekday(last) + 1) % 7)
}

/** Returns the minutes by which England is ahead of UTC after 02:00 on a day: 60 during British Summer Time, and otherwise 0. */
export function ukOffsetMinutes(day: number): number {
  const year = new Date(day * dayMs).getUTCFullYear()
  return day >= lastSunday(year, 3) && day < lastSunday(year, 10) ? 60 : 0
}

/** Formats an instant in UTC with `Z`, and with a fraction only if the fraction is not zero, like the service (service.md 2.10). */
export function formatInstant(ms: number): string {
  const text = new Date(ms).toISOString()
  return text.endsWith('.000Z') ? `${text.slice(0, 19)}Z` : text
}

/** The roll state of a learner, which changes from Future to Current to Leaver (service-facts 16). */
type RollState = 'Current' | 'Leaver' | 'Future'

/** The first and last day of a learner on roll, as day numbers. For a current learner, the last day is in the future. */
export interface Enrolment {
  readonly admissionDay: number
  readonly leavingDay: number
}

/** Returns true if a learner is on roll on a day. The first and the last day count as on roll. */
export function isOnRoll({ admissionDay, leavingDay }: Enrolment, day: number): boolean {
  return day >= admissionDay && day <= leavingDay
}

export function rollStateOn(enrolment: Enrolment, day: number): RollState {
  if (isOnRoll(enrolment, day)) return 'Current'
  return day < enrolment.admissionDay ? 'Future' : 'Leaver'
}

/** Returns the year group of a learner on a day, which is 1 in the school year that began in `entryYear`. */
export function yearGroupOn({ entryYear }: { readonly entryYear: number }, day: number): number {
  return schoolYearOf(day) - entryYear + 1
}

export function monthsBetween(from: number, to: number): number {
  const [start, end] = [new Date(from * dayMs), new Date(to * dayMs)]
  const months =
    (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth()
  return end.getUTCDate() < start.getUTCDate() ? months - 1 : months
}
