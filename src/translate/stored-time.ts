/** Rules by which a service may store `RecordedOn`, one bit each. */
const rules: readonly { readonly bit: number; readonly store: (ms: number) => number }[] = [
  { bit: 1, store: (ms) => ms },
  { bit: 2, store: (ms) => Math.floor(ms / 1_000) * 1_000 },
  { bit: 4, store: (ms) => Math.round(ms / 1_000) * 1_000 },
  // A `datetime` of SQL counts 1/300 s; its milliseconds end in 0, 3 or 7.
  { bit: 8, store: (ms) => Math.round((Math.round((ms * 3) / 10) * 10) / 3) },
  { bit: 16, store: (ms) => Math.floor(ms / 60_000) * 60_000 },
  { bit: 32, store: (ms) => Math.round(ms / 60_000) * 60_000 },
]

/** Rules that keep the client's time, at some precision. */
export const KEPT_TIMES = 63

/** The service stamps every mark with its own time. */
export const OWN_TIME = 64

/** Each rule may hold. */
export const allTimes = KEPT_TIMES | OWN_TIME

/** The largest difference between a posted time and the stored one at the coarsest precision, ms. */
export const coarsestMs = 60_000

/** The rules in `among` that store `postedMs` as `storedMs`. */
export function fittingTimes(postedMs: number, storedMs: number, among: number): number {
  let fitting = 0
  for (const { bit, store } of rules) if ((among & bit) !== 0 && store(postedMs) === storedMs) fitting |= bit
  return fitting
}

/** Milliseconds of an ISO 8601 text; one without an offset is in UTC. NaN for any other text. */
export function parseTime(text: string | null | undefined): number {
  if (text === null || text === undefined) return Number.NaN
  return Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`)
}
