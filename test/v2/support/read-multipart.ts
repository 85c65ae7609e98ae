export interface WrittenPart {
  readonly headers: Readonly<Record<string, string>>
  readonly content: string
}

/**
 * Reads a well-formed multipart body with CRLF (RFC 2046 5.1.1). Throws an error for any deviation. The reader shares no code with the
 * encoder under test.
 */
export function readMultipart(body: string, boundary: string): WrittenPart[] {
  const close = body.startsWith(`--${boundary}--`) ? body : body.split(`\r\n--${boundary}--`)[0]
  if (!`\r\n${body}`.includes(`\r\n--${boundary}--`)) throw new Error('the body is not closed')
  const [preamble, ...pieces] = `\r\n${close}`.split(`\r\n--${boundary}\r\n`)
  if (pieces.length > 0 && preamble !== '') throw new Error('text stands before the first part')
  return pieces.map(readPart)
}

export function readPart(text: string): WrittenPart {
  const blank = `\r\n${text}`.indexOf('\r\n\r\n')
  if (blank === -1) throw new Error('a part has no blank line')
  const headers: Record<string, string> = {}
  for (const line of text.slice(0, blank).split('\r\n').filter(Boolean)) {
    const [, name, value] = /^([A-Z][A-Za-z-]*): (\S.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined || name in headers) throw new Error(`a bad header: ${line}`)
    headers[name] = value
  }
  return { headers, content: text.slice(blank + 2) }
}
