/** A piece of a body: framing (delimiters, headers, text between parts), or the content of a part. */
export interface MessagePiece {
  readonly isFraming: boolean
  readonly bytes: Buffer
}

/** The start line and the headers of the HTTP message in a part, with the blank line behind them. */
const HEAD =
  /(?:^|\n)(?:HTTP\/\d\.\d[ \t]+\d{3}[^\n]*|[A-Za-z]+[ \t]+\S+[ \t]+HTTP\/\d[^\n]*)\n(?:[^\r\n][^\n]*\n)*\r?\n/g
const BOUNDARY = /boundary[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))/gi

/**
 * Splits a body into framing and contents. It follows the text and no rules of a service, so it also splits what a decoder refuses: a
 * content ends at the next delimiter line of any boundary that is named. A body that is not multipart is one content.
 */
export function splitMessage(body: Buffer, contentType: string | undefined): readonly MessagePiece[] {
  if (!/^\s*multipart\//i.test(contentType ?? '')) return [{ isFraming: isText(contentType), bytes: body }]
  const text = body.toString('latin1')
  const ends = endsOf(text, contentType ?? '')
  const pieces: MessagePiece[] = []
  let from = 0
  let next = 0
  for (const { 0: head, index } of text.matchAll(HEAD)) {
    const start = index + head.length
    // A head within a content is content.
    if (index < from) continue
    // The blank line may be the line end before the delimiter.
    while ((ends[next] ?? Infinity) < start - 2) next += 1
    const end = Math.max(start, ends[next] ?? text.length)
    pieces.push({ isFraming: true, bytes: body.subarray(from, start) })
    pieces.push({ isFraming: false, bytes: body.subarray(start, end) })
    from = end
  }
  pieces.push({ isFraming: true, bytes: body.subarray(from) })
  return pieces
}

/** What is neither JSON nor multipart: its words are taken one by one. */
const isText = (contentType: string | undefined): boolean => /^\s*text\//i.test(contentType ?? '')

/** Where the line ends begin that stand before a delimiter line, in order. */
function endsOf(text: string, contentType: string): readonly number[] {
  const names = new Set<string>()
  for (const [, quoted, bare] of `${contentType}\n${text}`.matchAll(BOUNDARY)) {
    names.add(quoted === undefined ? (bare ?? '') : quoted.replaceAll(/\\(.)/g, '$1'))
  }
  const ends: number[] = []
  for (const { 0: line, index } of text.matchAll(/\r?\n--[^\n]*/g)) {
    const delimiter = line.trimStart().slice(2).trimEnd()
    const isNamed = [delimiter, delimiter.replace(/--$/, '')].some((name) => names.has(name))
    // A body may be framed by a boundary that is named nowhere: by its form it is one.
    if (isNamed || /^(?:batch|changeset)(?:response)?_\S+$/i.test(delimiter)) ends.push(index)
  }
  return ends
}
