import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { type MediaType, parseMediaType } from '../../http/media-type.ts'

// RFC 2046 5.1.1: bchars, and no blank at the end. Underscore, dot and the like are all in it.
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

// Programs of COM and Delphi quote guids in braces, and .NET reads any quoted text (batch-wire F31).
const QUOTED_BOUNDARY = /^[ -~]{0,199}[!-~]$/

/** True for text that may be a boundary: 1 to 200 printable characters of ASCII, no blank at the end. */
export function isBoundary(text: string): boolean {
  return QUOTED_BOUNDARY.test(text)
}

/**
 * The boundary that a `Content-Type` of `multipart/mixed` names (batch-wire F5 to F7).
 * Errors: `ADP_MEDIA_TYPE` for another type, `ADP_BOUNDARY` for none, two, an empty, too long or ill-formed one.
 */
export function readBoundary(contentType: string | undefined, at: ErrorLocation = {}): string {
  if (contentType === undefined || contentType.trim() === '') {
    throw new AdapterError('ADP_MEDIA_TYPE', 'No Content-Type. Send multipart/mixed with a boundary.', { at })
  }
  const media = parseHeader(contentType, at)
  if (media.type !== 'multipart/mixed') {
    throw new AdapterError('ADP_MEDIA_TYPE', 'A batch is multipart/mixed; this Content-Type is another.', {
      at,
    })
  }
  return boundaryOf(media, at)
}

/** The boundary parameter of a parsed multipart type; errors as `readBoundary`. */
export function boundaryOf(media: MediaType, at: ErrorLocation): string {
  const [first, ...others] = media.parameters.filter(([name]) => name === 'boundary')
  if (first === undefined) throw fault('has no boundary parameter', at)
  if (others.length > 0) throw fault('has two boundary parameters', at)
  const [, boundary, isQuoted] = first
  if (boundary === '') throw fault('has an empty boundary', at)
  if (!(isQuoted ? QUOTED_BOUNDARY : BOUNDARY).test(boundary))
    throw fault('has a boundary that RFC 2046 5.1.1 does not allow', at)
  return boundary
}

function parseHeader(contentType: string, at: ErrorLocation): MediaType {
  try {
    return parseMediaType(contentType)
  } catch (cause) {
    // One code for all that is wrong with a boundary parameter (batch-wire F6).
    if (/boundary/i.test(contentType)) throw fault('cannot be read', at, cause)
    throw cause
  }
}

function fault(what: string, at: ErrorLocation, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_BOUNDARY',
    `The multipart Content-Type ${what}. Use 1 to 70 characters, or up to 200 in quotes.`,
    {
      at,
      cause,
    },
  )
}
