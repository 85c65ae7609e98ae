/** Returns the bytes of a text, with CRLF in place of each LF. */
export function crlf(text: string): Buffer {
  return Buffer.from(text.replaceAll('\n', '\r\n'))
}
