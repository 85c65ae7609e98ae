import { fieldOf } from '../wire-exchange.ts'
import type { RecordedMessage } from './exchange.ts'

/** A piece of a body: framing (delimiters, headers, text between parts) or the content of a part. */
interface MessagePiece {
  readonly isFraming: boolean
  readonly bytes: Buffer
}

/** Matches the start line of the HTTP message in a part. The target of a request may contain spaces (batch-wire F21). */
const START = /^(?:HTTP\/\d\.\d[ \t]+\d{3}|[A-Za-z]+[ \t]+\S.*[ \t]HTTP\/\d)/
const BOUNDARY = /boundary[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))/gi
/** The usual form of a boundary. The form identifies boundaries that no header names. */
const USUAL_NAME = /^(?:batch|changeset)(?:response)?_\S+$/i

/**
 * Splits a body into framing and contents in linear time. The function applies no rules of the service, so that it also splits bodies that
 * a decoder refuses. Content begins after the blank line of an HTTP head and ends at the next known delimiter. A body that is not multipart
 * is a single piece.
 */
export function* splitMessage(message: RecordedMessage): Generator<MessagePiece> {
  const { body } = message
  const contentType = fieldOf(message, 'content-type')
  if (!/^\s*multipart\//i.test(contentType ?? '')) {
    // A plain-text body counts as framing, so that it is masked line by line.
    yield { isFraming: isText(contentType), bytes: body }
    return
  }
  const text = body.toString('latin1')
  const names = new Set<string>()
  addNames(names, contentType ?? '')
  let from = 0
  let isHead = false
  for (let at = 0; at < text.length;) {
    const feed = text.indexOf('\n', at)
    const next = feed === -1 ? text.length : feed + 1
    const whole = text.slice(at, next)
    const line = whole.trimEnd()
    at = next
    // Only an empty line ends a head. A line of spaces continues the preceding header (RFC 9112 5.2).
    if (isHead && /^\r?\n$/.test(whole)) {
      const end = endOfContent(text, next, names)
      yield { isFraming: true, bytes: body.subarray(from, next) }
      yield { isFraming: false, bytes: body.subarray(next, end) }
      from = at = end
      isHead = false
    } else if (line.startsWith('--')) {
      names.add(nameOf(line))
      // A delimiter in place of the blank line ends the head without content, and framing follows.
      isHead = false
    } else if (START.test(line)) isHead = true
    else addNames(names, line)
  }
  yield { isFraming: true, bytes: body.subarray(from) }
}

const isText = (contentType: string | undefined): boolean => /^\s*text\//i.test(contentType ?? '')

function addNames(names: Set<string>, text: string): void {
  if (!/boundary/i.test(text)) return
  for (const [, quoted, bare] of text.matchAll(BOUNDARY))
    names.add(quoted === undefined ? (bare ?? '') : quoted.replaceAll(/\\(.)/g, '$1'))
}

const nameOf = (line: string): string => line.slice(2).trimEnd().replace(/--$/, '')

function endOfContent(text: string, start: number, names: ReadonlySet<string>): number {
  // The search starts one character early: the content may be empty, and the line end before the delimiter then belongs to the head.
  for (let at = start - 1; at !== -1; at = text.indexOf('\n--', at + 1)) {
    if (!text.startsWith('--', at + 1)) continue
    const feed = text.indexOf('\n', at + 1)
    const line = text.slice(at + 1, feed === -1 ? text.length : feed).trimEnd()
    const isDelimiter = [line.slice(2), nameOf(line)].some((name) => names.has(name) || USUAL_NAME.test(name))
    if (isDelimiter) return Math.max(start, text[at - 1] === '\r' ? at - 1 : at)
  }
  return text.length
}
