/** Returns a comment without what a service may change: Unicode normal form, line ends, runs of blanks, and blanks at the ends. */
function contentOf(comment: string): string {
  return comment.normalize('NFD').replaceAll(/\s+/g, ' ').trim()
}

export function isSameComment(posted: string, stored: string): boolean {
  return posted === stored || contentOf(posted) === contentOf(stored)
}

/** Matches a lone surrogate, which a cut may leave at the end. */
const brokenEnd = /[\uD800-\uDBFF\uFFFD]+$/

/**
 * Returns true if the stored comment may be the beginning of the posted one. `cutLength` is where the service cuts. If `undefined`, the cut
 * may be anywhere from `wholeLength` on, since a comment of that length was stored whole.
 */
export function isCutComment(posted: string, stored: string, cutLength?: number, wholeLength = 0): boolean {
  if (cutLength !== undefined)
    return formsOf(posted).some((form) => isSameComment(form.slice(0, cutLength), stored))
  const rest = posted.slice(stored.length)
  const blanks = rest.length - rest.trimStart().length
  if (stored.length + blanks < wholeLength) return false
  const content = contentOf(stored.replace(brokenEnd, ''))
  return content !== '' && contentOf(posted).startsWith(content)
}

/** Returns the forms, of different lengths, in which a service may store a comment before it cuts the text. */
function formsOf(comment: string): readonly string[] {
  const lines = comment.replaceAll(/\r\n?/g, '\n')
  const ends = [comment, lines, lines.replaceAll('\n', '\r\n'), comment.replaceAll(/\s+/g, ' ')]
  const trimmed = ends.flatMap((form) => [form, form.trim()])
  return trimmed.flatMap((form) => [form, form.normalize('NFC'), form.normalize('NFD')])
}

/** The rules by which a service may store `RecordedOn`. */
const rules: readonly ((ms: number) => number)[] = [
  (ms) => ms,
  (ms) => Math.floor(ms / 1_000) * 1_000,
  (ms) => Math.round(ms / 1_000) * 1_000,
  // A `datetime` in SQL counts 1/300 s, so its milliseconds end in 0, 3 or 7.
  (ms) => Math.round((Math.round((ms * 3) / 10) * 10) / 3),
  (ms) => Math.floor(ms / 60_000) * 60_000,
  (ms) => Math.round(ms / 60_000) * 60_000,
]

/** Returns true if a service that keeps the given time at some precision may store `givenMs` as `storedMs`. */
export function isStoredAs(givenMs: number, storedMs: number): boolean {
  return rules.some((store) => store(givenMs) === storedMs)
}

const QUARTER_HOUR_MS = 900_000
/** The time zones of the world span 26 hours. */
export const WIDEST_SHIFT_MS = 26 * 3_600_000

/** Returns true if both are the same time, shown at another precision or in another zone. */
export function isShownAs(oneMs: number, otherMs: number): boolean {
  const shiftMs = Math.round((otherMs - oneMs) / QUARTER_HOUR_MS) * QUARTER_HOUR_MS
  if (Math.abs(shiftMs) > WIDEST_SHIFT_MS) return false
  return isStoredAs(oneMs + shiftMs, otherMs) || isStoredAs(otherMs - shiftMs, oneMs)
}

/** Returns the coarsest precision that a stored time may have, in ms. */
export function precisionMsOf(storedMs: number): number {
  if (storedMs % 60_000 === 0) return 60_000
  return storedMs % 1_000 === 0 ? 1_000 : 10
}

/** Parses ISO 8601 text into milliseconds, as UTC if it has no offset. Returns NaN for any other text. */
export function parseTime(text: string | null | undefined): number {
  if (text === null || text === undefined) return Number.NaN
  // Most marks of a batch have the same time.
  if (text === lastText) return lastMs
  lastText = text
  lastMs = Date.parse(/T.*(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`)
  return lastMs
}

let lastText = ''
let lastMs = Number.NaN
