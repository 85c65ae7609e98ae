import type { IncomingMessage } from 'node:http'

/** The side whose service issued a next link. */
export type LinkSide = 'v2'

/** The first segment of the path of a next link that V2 issued: V2 also serves the page that it leads to, whatever the stage. */
export const V2_LINK_SEGMENT = '/~v2'

/** Clients may escape the tilde (RFC 3986 2.3 calls both forms the same). */
const MARKED = /^((?:https?:\/\/[^/?#]+)?)\/(?:~|%7e)v2(?=[/?]|$)/i
const TILDE = 0x7e
const PERCENT = 0x25
const SLASH = 0x2f

/**
 * Takes the marker of the issuing side off the target of a request, before the target is read: all later steps see the path that
 * the service knows. Undefined: the target has none.
 */
export function takeSideMarker(request: IncomingMessage): LinkSide | undefined {
  const { url = '' } = request
  const second = url.charCodeAt(1)
  if (url.charCodeAt(0) === SLASH && second !== TILDE && second !== PERCENT) return undefined
  const found = MARKED.exec(url)
  if (found === null) return undefined
  const rest = url.slice(found[0].length)
  request.url = `${found[1] ?? ''}${rest.startsWith('/') ? '' : '/'}${rest}`
  return 'v2'
}
