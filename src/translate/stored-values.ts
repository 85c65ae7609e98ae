/**
 * Normalises everything in a comment that a service may change: Unicode normal form, line ends, repeated white space, and spaces at the
 * ends.
 */
function contentOf(comment: string): string {
  return comment.normalize('NFD').replaceAll(/\s+/g, ' ').trim()
}

export function isSameComment(posted: string, stored: string): boolean {
  return posted === stored || contentOf(posted) === contentOf(stored)
}

/** Matches half a surrogate pair or a replacement character, which a cut may leave at the end. */
const brokenEnd = /[\uD800-\uDBFF\uFFFD]+$/

/**
 * Returns true if the stored comment may be the beginning of the posted comment. `cutLength` is the length at which the service cuts
 * comments. If `cutLength` is `undefined`, the cut may be at any length from `wholeLength` on, because the service has stored a comment of
 * `wholeLength` whole.
 */
export function isCutComment(posted: string, stored: string, cutLength?: number, wholeLength = 0): boolean {
  if (cutLength !== undefined)
    return formsOf(posted).some((form) => isSameComment(form.slice(0, cutLength), stored))
  const rest = posted.slice(stored.length)
  const spaces = rest.length - rest.trimStart().length
  if (stored.length + spaces < wholeLength) return false
  const content = contentOf(stored.replace(brokenEnd, ''))
  return content !== '' && contentOf(posted).startsWith(content)
}

/** Returns the forms of different lengths that a service may give a comment before it cuts the text. */
function formsOf(comment: string): readonly string[] {
  const lines = comment.replaceAll(/\r\n?/g, '\n')
  const ends = [comment, lines, lines.replaceAll('\n', '\r\n'), comment.replaceAll(/\s+/g, ' ')]
  const trimmed = ends.flatMap((form) => [form, form.trim()])
  return trimmed.flatMap((form) => [form, form.normalize('NFC'), form.normalize('NFD')])
}

/** The rules by which a service may round the time that it stores as `RecordedOn`. */
const rules: readonly ((ms: number) => number)[] = [
  (ms) => ms,
  (ms) => Math.floor(ms / 1_000) * 1_000,
  (ms) => Math.round(ms / 1_000) * 1_000,
  // The type `datetime` of SQL Server counts in units of 1/300 s, so its milliseconds end in 0, 3 or 7.
  (ms) => Math.round((Math.round((ms * 3) / 10) * 10) / 3),
  (ms) => Math.floor(ms / 60_000) * 60_000,
  (ms) => Math.round(ms / 60_000) * 60_000,
]

/** Returns true if a service that rounds times by one of `rules` may store `givenMs` as `storedMs`. */
export function isStoredAs(givenMs: number, storedMs: number): boolean {
  return rules.some((store) => store(givenMs) === storedMs)
}

const QUARTER_HOUR_MS = 900_000
/** The greatest difference between two time zones of the world. */
export const WIDEST_SHIFT_MS = 26 * 3_600_000

/** Returns true if both values may be the same time, rounded to different precisions or shown in different time zones. */
export function isShownAs(oneMs: number, otherMs: number): boolean {
  const shiftMs = Math.round((otherMs - oneMs) / QUARTER_HOUR_MS) * QUARTER_HOUR_MS
  if (Math.abs(shiftMs) > WIDEST_SHIFT_MS) return false
  return isStoredAs(oneMs + shiftMs, otherMs) || isStoredAs(otherMs - shiftMs, oneMs)
}

/** Returns the coarsest precision in ms to which a stored time may have been rounded. */
export function precisionMsOf(storedMs: number): number {
  if (storedMs % 60_000 === 0) return 60_000
  return storedMs % 1_000 === 0 ? 1_000 : 10
}

/** Parses ISO 8601 text into milliseconds since the epoch. Text without an offset is in UTC. Returns NaN for any other text. */
export function parseTime(text: string | null | undefined): number {
  if (text === null || text === undefined) return Number.NaN
  // Reuses the last result, because most marks of a batch have the same time.
  if (text === lastText) return lastMs
  lastText = text
  lastMs = Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`)
  return lastMs
}

let lastText = ''
let lastMs = Number.NaN
