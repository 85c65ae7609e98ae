export function crlf(text: string): Buffer {
  return Buffer.from(text.replaceAll('\n', '\r\n'))
}
