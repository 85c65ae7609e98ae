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
