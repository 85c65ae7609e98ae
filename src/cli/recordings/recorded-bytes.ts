import { guessBoundary } from '../../v2/index.ts'

/** Blank lines may precede it (RFC 9112 2.2). A faulty request line is accepted here, so that `check` can report its fault. */
const REQUEST_LINE =
  /^(?:\r?\n)*(?:(?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|CONNECT|TRACE)[ \t]|\S+[ \t]+\S.*HTTP\/\d)/

/** The content of a file: an HTTP `request` with its head, the `body` of a batch alone, an HTTP `reply`, or something `else`. */
export function kindOf(bytes: Buffer): 'request' | 'body' | 'reply' | 'else' {
  const start = bytes.toString('latin1', 0, 8_192)
  if (REQUEST_LINE.test(start)) return 'request'
  if (/^HTTP\/\d\.\d \d{3}/.test(start)) return 'reply'
  return guessBoundary(bytes) === undefined ? 'else' : 'body'
}

/** The bytes of a recorded request as they were on the wire, and the repairs that this took. */
export interface WireBytes {
  readonly bytes: Buffer
  /** Bytes that Content-Length announces and the recording does not have. */
  readonly missing: number
  /** True if the head had bare line feeds. */
  readonly isConverted: boolean
  /** False if the head does not give the length of the body: all bytes after it were taken. */
  readonly isFramed: boolean
}

/**
 * Repairs the damage that recorders and editors do to a request: a head with bare line feeds gets CRLF, and one without
 * Content-Length and Transfer-Encoding gets the length of the rest. A Content-Length that is too large is reduced.
 */
export function toWireBytes(bytes: Buffer): WireBytes {
  const headEnd = headEndOf(bytes)
  const recorded = bytes.toString('latin1', 0, headEnd).trimStart()
  // A head with both kinds of line ends was sent that way.
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

/** The offset after the blank line that ends the head; the end of the bytes without one. */
function headEndOf(bytes: Buffer): number {
  const first = bytes.findIndex((byte) => byte !== 0x0d && byte !== 0x0a)
  const crlf = bytes.indexOf('\r\n\r\n', first)
  const lf = bytes.indexOf('\n\n', first)
  if (crlf !== -1 && (lf === -1 || crlf < lf)) return crlf + 4
  return lf === -1 ? bytes.length : lf + 2
}
