/** Milliseconds of a day. */
export const dayMs = 86_400_000

/** The number of a calendar day: days since 1970-01-01. */
export function dayNumber(isoDate: string): number {
  return Math.floor(Date.parse(`${isoDate.slice(0, 10)}T00:00:00Z`) / dayMs)
}

/** The number of the day that holds an instant in milliseconds. */
export function dayOf(ms: number): number {
  return Math.floor(ms / dayMs)
}

/** `2026-03-02` from the number of a day. */
export function formatDay(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}

/** Day of the week from 0 (Monday) to 6 (Sunday). */
export function weekday(day: number): number {
  return (day + 3) % 7
}

/** The Monday of the week that holds the day. */
export function mondayOf(day: number): number {
  return day - weekday(day)
}

/** The calendar year in which the school year of the day began (1 September). */
export function schoolYearOf(day: number): number {
  const date = new Date(day * dayMs)
  return date.getUTCMonth() >= 8 ? date.getUTCFullYear() : date.getUTCFullYear() - 1
}

/** The number of the last Sunday of a month (`month` from 1). */
function lastSunday(year: number, month: number): number {
  const last = Date.UTC(year, month, 0) / dayMs
  return last - ((weekday(last) + 1) % 7)
}

/** Minutes that local time in England is ahead of UTC on a day, after 02:00: 60 in British Summer Time, else 0. */
export function ukOffsetMinutes(day: number): number {
  const year = new Date(day * dayMs).getUTCFullYear()
  return day >= lastSunday(year, 3) && day < lastSunday(year, 10) ? 60 : 0
}

/** Writes an instant as the service does: UTC with `Z`, fractions only where there are any (service.md 2.10). */
export function formatInstant(ms: number): string {
  const text = new Date(ms).toISOString()
  return text.endsWith('.000Z') ? `${text.slice(0, 19)}Z` : text
}

/** The roll state of a learner; the cycle is future, current, leaver (service-facts 16). */
type RollState = 'Current' | 'Leaver' | 'Future'

/** From when until when a learner is on roll, as day numbers; pupils who are still there have a day on which they will leave. */
export interface Enrolment {
  readonly admissionDay: number
  readonly leavingDay: number
}

/** Whether a learner is on roll on a day; both ends of the enrolment count. */
export function isOnRoll({ admissionDay, leavingDay }: Enrolment, day: number): boolean {
  return day >= admissionDay && day <= leavingDay
}

/** The roll state on a day. */
export function rollStateOn(enrolment: Enrolment, day: number): RollState {
  if (isOnRoll(enrolment, day)) return 'Current'
  return day < enrolment.admissionDay ? 'Future' : 'Leaver'
}

/** The year group on a day: 1 in the school year that began in `entryYear`. */
export function yearGroupOn({ entryYear }: { readonly entryYear: number }, day: number): number {
  return schoolYearOf(day) - entryYear + 1
}

/** Whole months from a day to a later one. */
export function monthsBetween(from: number, to: number): number {
  const [start, end] = [new Date(from * dayMs), new Date(to * dayMs)]
  const months =
    (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth()
  return end.getUTCDate() < start.getUTCDate() ? months - 1 : months
}
