/** Returns the bytes of a text with LF, with the line ends of the wire. */
export function crlf(text: string): Buffer {
  return Buffer.from(text.replaceAll('\n', '\r\n'))
}
