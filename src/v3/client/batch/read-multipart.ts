/** The answer to one request of a batch. */
export interface AnswerPart {
  /** Content-ID or JSON id; undefined where the part has none. */
  readonly id: string | undefined
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}

/**
 * Reads a multipart batch reply: the parts in their order, those of changesets among them. Only what is closed by a delimiter is
 * a part, so that nothing is read from a torn one. Undefined: no multipart reply.
 */
export function readMultipartAnswers(
  body: Buffer,
  contentType: string | undefined,
): AnswerPart[] | undefined {
  const boundary = boundaryOf(contentType ?? '')
  return boundary === undefined ? undefined : readParts(body.toString('latin1'), boundary, true)
}

function readParts(text: string, boundary: string, mayNest: boolean): AnswerPart[] {
  return splitParts(text, boundary).flatMap((part) => {
    const { headers, content } = readHead(part)
    const nested = mayNest ? boundaryOf(headers.get('content-type') ?? '') : undefined
    if (nested !== undefined) return readParts(content, nested, false)
    const answer = readAnswer(headers.get('content-id'), content)
    return answer === undefined ? [] : [answer]
  })
}

function boundaryOf(contentType: string): string | undefined {
  if (!/^multipart\/mixed\s*;/i.test(contentType)) return undefined
  const found = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  return found?.[1] ?? found?.[2]
}

/** The texts between delimiter lines (RFC 2046 5.1.1); the line end before a delimiter belongs to it. */
function splitParts(text: string, boundary: string): string[] {
  const delimiter = `--${boundary}`
  const parts: string[] = []
  let start = -1
  for (let at = text.indexOf(delimiter); at >= 0; at = text.indexOf(delimiter, at + delimiter.length)) {
    if (at > 0 && text[at - 1] !== '\n') continue
    const lineEnd = text.indexOf('\n', at)
    const rest = text.slice(at + delimiter.length, lineEnd < 0 ? text.length : lineEnd)
    if (!/^(?:--)?[ \t]*\r?$/.test(rest)) continue
    if (start >= 0) parts.push(text.slice(start, Math.max(start, at)).replace(/\r?\n$/, ''))
    if (rest.startsWith('--')) break
    start = lineEnd < 0 ? text.length : lineEnd + 1
  }
  return parts
}

/** Headers up to the first blank line, and the rest. */
function readHead(text: string): { headers: ReadonlyMap<string, string>; content: string } {
  const headers = new Map<string, string>()
  let at = 0
  while (at < text.length) {
    const next = text.indexOf('\n', at)
    const end = next < 0 ? text.length : next
    const line = text.slice(at, end).trim()
    at = end + 1
    if (line === '') break
    const colon = line.indexOf(':')
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
  }
  return { headers, content: text.slice(at) }
}

function readAnswer(mimeId: string | undefined, content: string): AnswerPart | undefined {
  const [line = '', status] = /^\s*HTTP\/1\.[01] (\d{3})[^\n]*\n?/.exec(content) ?? []
  if (status === undefined) return undefined
  const { headers, content: body } = readHead(content.slice(line.length))
  return {
    id: mimeId ?? headers.get('content-id'),
    status: Number(status),
    retryAfter: headers.get('retry-after'),
    body: Buffer.from(body, 'latin1').toString('utf8'),
  }
}
