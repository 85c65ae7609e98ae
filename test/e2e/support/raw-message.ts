/** An HTTP/1.1 message parsed from bytes on the wire. The chunked coding is removed from the body. */
export interface RawMessage {
  /** The request line or status line. */
  readonly startLine: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

/** Reads a message, or returns `undefined` if bytes are missing. The parser shares no code with the product. */
export function readMessage(bytes: Buffer): RawMessage | undefined {
  return readFirst(bytes)?.message
}

/** Reads all messages of a connection in order. Ignores an incomplete message at the end. */
export function readMessages(bytes: Buffer): RawMessage[] {
  const messages: RawMessage[] = []
  for (let rest = bytes, first = readFirst(rest); first !== undefined; first = readFirst(rest)) {
    messages.push(first.message)
    rest = rest.subarray(first.end)
  }
  return messages
}

function readFirst(bytes: Buffer): { message: RawMessage; end: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [startLine = '', ...lines] = bytes.toString('utf8', 0, headEnd).split('\r\n')
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
  })
  const rest = bytes.subarray(headEnd + 4)
  const message = { startLine, headers }
  if (headerOf(message, 'transfer-encoding') === 'chunked') {
    const joined = joinChunks(rest)
    if (joined === undefined) return undefined
    return { message: { ...message, body: joined.body }, end: headEnd + 4 + joined.end }
  }
  const length = Number(headerOf(message, 'content-length') ?? 0)
  if (rest.length < length) return undefined
  return { message: { ...message, body: rest.subarray(0, length) }, end: headEnd + 4 + length }
}

/** Returns the first value of a header. `name` is in lower case. */
export function headerOf({ headers }: Pick<RawMessage, 'headers'>, name: string): string | undefined {
  return headers.find(([own]) => own.toLowerCase() === name)?.[1]
}

function joinChunks(bytes: Buffer): { body: Buffer; end: number } | undefined {
  const chunks: Buffer[] = []
  for (let at = 0; ;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const start = lineEnd + 2
    if (bytes.length < start + size + 2) return undefined
    if (size === 0) return { body: Buffer.concat(chunks), end: start + 2 }
    chunks.push(bytes.subarray(start, start + size))
    at = start + size + 2
  }
}
