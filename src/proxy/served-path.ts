import { AdapterError } from '../errors.ts'

/** A dot segment, an empty one, a backslash or a control character: what another hop may read as another path. */
const AMBIGUOUS = /[\\\u0000-\u001f\u007f]|\/\/|(^|\/)\.\.?(\/|$)/

/**
 * The decoded path of a request target, to hold against the list of what is served. Error `ADP_PATH` for one that could
 * mean another path upstream, also when that shows only after it was decoded twice.
 */
export function servedPath(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? ''
  const once = decodePath(path)
  const twice = once?.includes('%') === true ? decodePath(once) : once
  const encoded = /%(?:25)*(?:2f|5c)/i.test(path)
  if (once === undefined || encoded || AMBIGUOUS.test(once) || AMBIGUOUS.test(twice ?? '')) {
    throw new AdapterError(
      'ADP_PATH',
      'The path has a dot segment, an encoded slash, a backslash or a bad encoding.',
    )
  }
  return once
}

function decodePath(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined // of the path: the caller refuses it; of a decoded one: it is a literal percent sign
  }
}
