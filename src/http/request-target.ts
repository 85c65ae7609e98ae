import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../errors.ts'

/** The target of a request. All routes and path patterns are compared with `path`. */
export interface RequestTarget {
  /** The decoded path. The parser accepts only paths that every server decodes in the same way. */
  readonly path: string
  /** The path as the client sent it, for requests to V3 and for links in replies. It has as many segments as `path`. */
  readonly rawPath: string
  /** The query with its `?`, or an empty string. */
  readonly query: string
  /** Host and port of a target in absolute form (RFC 9112 3.2.2), or `undefined` in origin form. */
  readonly authority: string | undefined
}

const ABSOLUTE = /^https?:\/\/([^/?#@]+)([^]*)$/i
const VISIBLE_ASCII = /^[\x21-\x7e]*$/
/** Matches an encoded slash, backslash, `?` or `#`. A server that decodes the character before splitting the target finds other segments. */
const ENCODED_DELIMITER = /%(?:2f|5c|3f|23)/i
/**
 * Matches characters of a decoded path that servers treat in different ways: a second layer of escapes, backslashes, parameters of a
 * segment (which Tomcat removes), empty segments (which nginx merges), white space around a segment, and dots at its end (which Windows
 * removes). Dot segments such as `..` also match.
 */
const AMBIGUOUS = /[%\\;]|\/\/|\/\s|[\s.](?:\/|$)/u
/**
 * Matches a path without escapes that all servers treat in the same way. Most paths match. A path with a key in parentheses is examined
 * further.
 */
const PLAIN = /^(?:\/[\w$-]+)+\/?$/
const PLAIN_TARGET = /^(?:\/[\w$-]+)+\/?\?[!-"$-~]*$/
/** Matches control characters, and characters beyond ASCII that are not letters, marks or digits, such as look-alikes of `/` and `.`. */
const UNUSUAL = /[\u0000-\u001f\u007f]|[^\u0000-\u007f\p{L}\p{M}\p{N}]/u

/** Parses a target in origin or absolute form. Throws `ADP_PATH` for any other form, or if servers may treat the path in different ways. */
export function readTarget(url: string): RequestTarget {
  if (PLAIN.test(url)) return { path: url, rawPath: url, query: '', authority: undefined }
  if (PLAIN_TARGET.test(url)) {
    const end = url.indexOf('?')
    const path = url.slice(0, end)
    return { path, rawPath: path, query: url.slice(end), authority: undefined }
  }
  if (!VISIBLE_ASCII.test(url) || url.includes('#')) throw ambiguous()
  const [, authority, rest = url] = ABSOLUTE.exec(url) ?? []
  const at = rest.indexOf('?')
  const sent = at < 0 ? rest : rest.slice(0, at)
  const rawPath = sent === '' && authority !== undefined ? '/' : sent
  const query = at < 0 ? '' : rest.slice(at)
  if (!rawPath.startsWith('/') || ENCODED_DELIMITER.test(rawPath)) throw ambiguous()
  return { path: decodePath(rawPath), rawPath, query, authority }
}

export function pathOf(request: IncomingMessage): string {
  return readTarget(request.url ?? '').path
}

/**
 * The maximum length of a path, far above any path of the service. A limit is needed, because each part of a batch reply repeats the path
 * prefix.
 */
const MAX_PATH = 2_048
const MAX_SEGMENTS = 64

/**
 * Parses the target of a request and rewrites it in origin form, so that all later code sees the same request. The host of an absolute
 * target replaces the `Host` header (RFC 9112 3.2.2). Throws `ADP_PATH` like `readTarget`, and for a path beyond `MAX_PATH` or
 * `MAX_SEGMENTS`.
 */
export function takeTarget(request: IncomingMessage): RequestTarget {
  const target = readTarget(request.url ?? '')
  if (target.rawPath.length > MAX_PATH)
    throw new AdapterError(
      'ADP_PATH',
      `The path is longer than ${MAX_PATH} characters. Nothing was sent. Use a shorter path.`,
    )
  if (target.rawPath.split('/').length > MAX_SEGMENTS + 1)
    throw new AdapterError(
      'ADP_PATH',
      `The path has more than ${MAX_SEGMENTS} segments. Nothing was sent. Use a path with fewer segments.`,
    )
  if (target.authority !== undefined) {
    request.url = target.rawPath + target.query
    request.headers.host = target.authority
  }
  return target
}

/** Returns the path without its last `count` segments. A trailing slash belongs to the last segment. */
export function pathBefore(path: string, count: number): string {
  let end = path.endsWith('/') ? path.length - 1 : path.length
  for (let left = count; left > 0 && end > 0; left -= 1) end = path.lastIndexOf('/', end - 1)
  return path.slice(0, Math.max(end, 0))
}

/** Decodes a path once. Throws `ADP_PATH` if servers may treat the path in different ways, such as a server that decodes twice. */
function decodePath(rawPath: string): string {
  if (PLAIN.test(rawPath)) return rawPath
  let path
  try {
    path = decodeURIComponent(rawPath)
  } catch {
    throw ambiguous()
  }
  // Some servers convert look-alikes, such as a full-width dot, to ASCII (NFKC), so a path that contains them is refused.
  const foldable = path.normalize('NFKC') !== path
  if (foldable || AMBIGUOUS.test(path) || UNUSUAL.test(path)) throw ambiguous()
  return path
}

function ambiguous(): AdapterError {
  return new AdapterError(
    'ADP_PATH',
    'Servers may read this path differently. Nothing was sent. Remove dot segments, empty segments, parameters, spaces around segments, backslashes, encoded delimiters, bad or double encoding, or "#".',
  )
}
