import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { type MediaType, parseMediaType } from '../../http/media-type.ts'

// RFC 2046 5.1.1: bchars, and no blank at the end. Underscore, dot and the like are all in it.
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/** True for text that may be a boundary: 1 to 70 characters of RFC 2046 5.1.1. */
export function isBoundary(text: string): boolean {
  return BOUNDARY.test(text)
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
  const values = media.parameters.filter(([name]) => name === 'boundary').map(([, value]) => value)
  const [boundary] = values
  if (boundary === undefined) throw fault('has no boundary parameter', at)
  if (values.length > 1) throw fault('has two boundary parameters', at)
  if (boundary === '') throw fault('has an empty boundary', at)
  if (!isBoundary(boundary)) throw fault('has a boundary that RFC 2046 5.1.1 does not allow', at)
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
  return new AdapterError('ADP_BOUNDARY', `The multipart Content-Type ${what}. Use 1 to 70 characters.`, {
    at,
    cause,
  })
}
