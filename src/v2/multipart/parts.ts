import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { contentEnd, createDelimiterFinder, type Delimiter, type NearDelimiters } from './delimiter.ts'

/** A part's bytes, headers and content, as offsets `[start, end)` into the body. */
export interface PartRange {
  readonly start: number
  readonly end: number
}

export interface SplitOptions {
  readonly maxPadding: number
  readonly near?: NearDelimiters
  /** The name of the multipart body, for errors. */
  readonly at: ErrorLocation
}

/**
 * Yields the parts of one multipart body within `[from, to)`, in order; preamble and epilogue are passed over
 * (batch-wire F3). An empty body yields nothing, whether it is closed at once or has one blank part (F11).
 * Errors: `ADP_TRUNCATED` when the body has no delimiter or no closing delimiter (F8): decided after the parts
 * before it were yielded, so nothing may be acted on until the iteration ends.
 */
export function* splitParts(
  bytes: Buffer,
  boundary: string,
  from: number,
  to: number,
  options: SplitOptions,
): Generator<PartRange, void> {
  const find = createDelimiterFinder(bytes, boundary, options.maxPadding, options.near)
  let open = find(from, to)
  if (open === undefined) throw truncated('no delimiter of its boundary', from, options.at)
  for (let count = 0; !open.closing; count += 1) {
    const next: Delimiter | undefined = find(open.end, to)
    if (next === undefined) throw truncated('no closing delimiter', to, options.at)
    const part = { start: open.end, end: contentEnd(bytes, open.end, next.start) }
    const emptyBody = count === 0 && next.closing && isBlank(bytes, part)
    if (!emptyBody) yield part
    open = next
  }
}

function isBlank(bytes: Buffer, part: PartRange): boolean {
  for (let at = part.start; at < part.end; at += 1) {
    const byte = bytes[at]
    if (byte !== 0x0a && byte !== 0x0d && byte !== 0x20 && byte !== 0x09) return false
  }
  return true
}

function truncated(what: string, offset: number, at: ErrorLocation): AdapterError {
  const where = at.changeset === undefined ? 'batch' : 'changeset'
  return new AdapterError(
    'ADP_TRUNCATED',
    `The ${where} has ${what}: it is cut off or its boundary is another. Nothing was posted; send it whole.`,
    { at: { ...at, offset } },
  )
}
