/**
 * Answers of one batch that were settled together, as one row: a line of JSON with positions and lengths (UTF-16 units),
 * then the texts. One row costs a fraction of one per record. Undefined: there is no answer among them.
 */
export function packAnswers(
  positions: readonly number[],
  answers: readonly (string | undefined)[],
): Uint8Array | undefined {
  const head: number[] = []
  let text = ''
  positions.forEach((position, index) => {
    const answer = answers[index]
    if (answer === undefined) return
    head.push(position, answer.length)
    text += answer
  })
  return head.length === 0 ? undefined : Buffer.from(`${JSON.stringify(head)}\n${text}`)
}

/** Undoes `packAnswers`, into `answers`: what comes later wins. */
export function unpackAnswers(body: Uint8Array, answers: Map<number, string>): void {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  const end = text.indexOf('\n')
  const head = JSON.parse(text.slice(0, end)) as unknown
  if (!Array.isArray(head)) return
  let from = end + 1
  for (let at = 0; at < head.length; at += 2) {
    const [position, length] = [Number(head[at]), Number(head[at + 1])]
    answers.set(position, text.slice(from, from + length))
    from += length
  }
}
