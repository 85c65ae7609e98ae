import { guessBoundary } from '../../v2/index.ts'

/**
 * What a file holds: an HTTP `request` with its head, the `body` of a batch alone, an HTTP `reply`, or something `else`.
 * Blank lines before a request line are passed over (RFC 9112 2.2).
 */
export function kindOf(bytes: Buffer): 'request' | 'body' | 'reply' | 'else' {
  const start = bytes.toString('latin1', 0, 8_192)
  if (/^(?:\r?\n)*[!#$%&'*+\-.^_`|~0-9A-Za-z]+ \S+ HTTP\/\d\.\d[ \t]*\r?\n/.test(start)) return 'request'
  if (/^HTTP\/\d\.\d \d{3}/.test(start)) return 'reply'
  return guessBoundary(bytes) === undefined ? 'else' : 'body'
}

/** The bytes of a recorded request as they were on the wire, and what had to be mended for that. */
export interface WireBytes {
  readonly bytes: Buffer
  /** Bytes that Content-Length announces and the recording does not have. */
  readonly missing: number
  /** Bytes behind the request. */
  readonly extra: number
}

/**
 * Mends what recorders and editors do to a request: line ends of the head become CRLF, and a head without Content-Length and
 * Transfer-Encoding gets the length of what follows it. A Content-Length that is too long is cut to what is there.
 */
export function toWireBytes(bytes: Buffer): WireBytes {
  const headEnd = headEndOf(bytes)
  const head = bytes.toString('latin1', 0, headEnd).trimStart().replaceAll(/\r?\n/g, '\r\n')
  const rest = bytes.subarray(headEnd)
  const join = (text: string): Buffer => Buffer.concat([Buffer.from(text, 'latin1'), rest])
  if (/^transfer-encoding[ \t]*:/im.test(head)) return { bytes: join(head), missing: 0, extra: 0 }
  const [field, name = '', digits] =
    /^(content-length[ \t]*:[ \t]*)(\d{1,15})(?=[ \t]*\r?$)/im.exec(head) ?? []
  if (field === undefined) {
    const isFramed = /^content-length[ \t]*:/im.test(head)
    const own = head.replace(/\r\n\r\n$/, `\r\nContent-Length: ${rest.length}\r\n\r\n`)
    return { bytes: join(isFramed ? head : own), missing: 0, extra: 0 }
  }
  const missing = Math.max(Number(digits) - rest.length, 0)
  const mended = missing === 0 ? head : head.replace(field, `${name}${rest.length}`)
  const behind = rest.subarray(Number(digits))
  return { bytes: join(mended), missing, extra: behind.toString('latin1').trim() === '' ? 0 : behind.length }
}

/** The offset behind the blank line that ends the head; the end of the bytes where there is none. */
function headEndOf(bytes: Buffer): number {
  const first = bytes.findIndex((byte) => byte !== 0x0d && byte !== 0x0a)
  const crlf = bytes.indexOf('\r\n\r\n', first)
  const lf = bytes.indexOf('\n\n', first)
  if (crlf !== -1 && (lf === -1 || crlf < lf)) return crlf + 4
  return lf === -1 ? bytes.length : lf + 2
}
