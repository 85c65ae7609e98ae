import { guessBoundary } from '../../v2/index.ts'

/** Blank lines may come before it (RFC 9112 2.2). One with a slip in it is a request too: its check will say what is wrong. */
const REQUEST_LINE =
  /^(?:\r?\n)*(?:(?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|CONNECT|TRACE)[ \t]|\S+[ \t]+\S.*HTTP\/\d)/

/** What a file holds: an HTTP `request` with its head, the `body` of a batch alone, an HTTP `reply`, or something `else`. */
export function kindOf(bytes: Buffer): 'request' | 'body' | 'reply' | 'else' {
  const start = bytes.toString('latin1', 0, 8_192)
  if (REQUEST_LINE.test(start)) return 'request'
  if (/^HTTP\/\d\.\d \d{3}/.test(start)) return 'reply'
  return guessBoundary(bytes) === undefined ? 'else' : 'body'
}

/** The bytes of a recorded request as they were on the wire, and what had to be mended for that. */
export interface WireBytes {
  readonly bytes: Buffer
  /** Bytes that Content-Length announces and the recording does not have. */
  readonly missing: number
  /** True where the head had line feeds alone. */
  readonly isConverted: boolean
  /** False where the head says nothing of the length of the body: all that follows it was taken. */
  readonly isFramed: boolean
}

/**
 * Mends what recorders and editors do to a request: a head of bare line feeds gets CRLF, and one without Content-Length and
 * Transfer-Encoding gets the length of what follows it. A Content-Length that is too long is cut to what is there.
 */
export function toWireBytes(bytes: Buffer): WireBytes {
  const headEnd = headEndOf(bytes)
  const recorded = bytes.toString('latin1', 0, headEnd).trimStart()
  // A head with both kinds of line ends was sent like that.
  const isConverted = !recorded.includes('\r\n')
  const head = isConverted ? recorded.replaceAll('\n', '\r\n') : recorded
  const rest = bytes.subarray(headEnd)
  const join = (text: string): Buffer => Buffer.concat([Buffer.from(text, 'latin1'), rest])
  if (/^transfer-encoding[ \t]*:/im.test(head))
    return { bytes: join(head), missing: 0, isConverted, isFramed: true }
  const [field, name = '', digits] =
    /^(content-length[ \t]*:[ \t]*)(\d{1,15})(?=[ \t]*\r?$)/im.exec(head) ?? []
  if (field === undefined) {
    const isFramed = /^content-length[ \t]*:/im.test(head)
    const own = head.replace(/\r\n\r\n$/, `\r\nContent-Length: ${rest.length}\r\n\r\n`)
    return { bytes: join(isFramed ? head : own), missing: 0, isConverted, isFramed }
  }
  const missing = Math.max(Number(digits) - rest.length, 0)
  const mended = missing === 0 ? head : head.replace(field, `${name}${rest.length}`)
  return { bytes: join(mended), missing, isConverted, isFramed: true }
}

/** The offset behind the blank line that ends the head; the end of the bytes where there is none. */
function headEndOf(bytes: Buffer): number {
  const first = bytes.findIndex((byte) => byte !== 0x0d && byte !== 0x0a)
  const crlf = bytes.indexOf('\r\n\r\n', first)
  const lf = bytes.indexOf('\n\n', first)
  if (crlf !== -1 && (lf === -1 || crlf < lf)) return crlf + 4
  return lf === -1 ? bytes.length : lf + 2
}
