const numbers = new Intl.NumberFormat('en')

export function formatCount(count: number): string {
  return numbers.format(count)
}

/** Formats a count with its unit, such as `1 mark` or `1,200 marks`. */
export const formatCounted = (count: number, one: string): string =>
  `${formatCount(count)} ${one}${count === 1 ? '' : 's'}`

/** Rounds a count to a multiple of 5, since a small count may point to a single child. Only 0 becomes 0. */
export function roundCount(count: number): number {
  return count === 0 ? 0 : Math.max(5, Math.round(count / 5) * 5)
}

/**
 * Formats a fraction as a percentage, such as `93.8 %` or `< 0.1 %`. Rounding never reaches 0 % or 100 %. Returns `undefined` if `whole` is
 * 0.
 */
export function formatShare(part: number, whole: number): string | undefined {
  if (whole === 0) return undefined
  if (part === 0 || part >= whole) return part === 0 ? '0 %' : '100 %'
  const percent = (part / whole) * 100
  return percent < 0.1 ? '< 0.1 %' : `${(Math.floor(percent * 10) / 10).toFixed(1)} %`
}

/** Formats a day, such as `22 Nov 2026`. Returns text that is not a day unchanged. */
export function formatLongDay(day: string): string {
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN
  return Number.isNaN(time) ? day : days.format(time)
}

const days = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
})
const instants = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
})

/** Formats an instant, such as `22 Nov 2026, 08:55 UTC`. */
export function formatInstant(instant: string): string {
  return `${instants.format(Date.parse(instant))} UTC`
}

/** Formats a duration, such as `4 min 31 s` or `2 h 05 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, '0')} min`
}

export function formatBound(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`
}
