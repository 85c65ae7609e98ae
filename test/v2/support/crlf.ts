/** The bytes of a text written with LF, with the line ends of the wire. */
export function crlf(text: string): Buffer {
  return Buffer.from(text.replaceAll('\n', '\r\n'))
}
