export const DAY_MS = 86_400_000

/** The start of a day that is written `YYYY-MM-DD`, ms since the epoch, in UTC; undefined for any other text. */
export function parseDay(text: string): number | undefined {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  // Date.parse may take the 31st of a shorter month for the 1st of the next.
  return Number.isNaN(ms) || formatDay(ms) !== text ? undefined : ms
}

/** The day of a time, `YYYY-MM-DD`, in UTC. */
export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
