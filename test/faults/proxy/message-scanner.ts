/** The part of a message that a message scanner waits for. */
type State =
  | { readonly kind: 'head' }
  | { readonly kind: 'length'; left: number }
  | { readonly kind: 'chunkSize' }
  | { readonly kind: 'chunkData'; left: number }
  | { readonly kind: 'trailers' }
  | { readonly kind: 'untilClose' }
  | { readonly kind: 'done' }

/** The result of scanning one piece of bytes, of which the first `used` belong to the message. */
export interface Scan {
  readonly used: number
  /** True if the message is complete. The rest of the piece belongs to the next message. */
  readonly done: boolean
}

/**
 * Finds the end of one HTTP/1.1 message in bytes that arrive in any pieces: by Content-Length, chunked, or by the end of the connection
 * (RFC 9112 6.3). `bodyless` marks the reply to a HEAD.
 */
export class MessageScanner {
  /** The start line and the headers, once they are complete. */
  head: string | undefined
  private readonly kind: 'request' | 'reply'
  private readonly bodyless: boolean
  private state: State = { kind: 'head' }
  private line = ''

  constructor(kind: 'request' | 'reply', bodyless = false) {
    this.kind = kind
    this.bodyless = bodyless
  }

  push(bytes: Buffer): Scan {
    let at = 0
    while (at < bytes.length && this.state.kind !== 'done') at = this.step(bytes, at)
    return { used: at, done: this.state.kind === 'done' }
  }

  /** Scans on from `at`, and returns the position where the scan stopped, which is always greater than `at`. */
  private step(bytes: Buffer, at: number): number {
    const { state } = this
    switch (state.kind) {
      case 'head':
      case 'chunkSize':
      case 'trailers':
        return this.readLines(bytes, at, state.kind)
      case 'length':
      case 'chunkData': {
        const end = Math.min(bytes.length, at + state.left)
        state.left -= end - at
        if (state.left === 0) this.state = { kind: state.kind === 'length' ? 'done' : 'chunkSize' }
        return end
      }
      case 'untilClose':
      case 'done':
        return bytes.length
    }
  }

  private readLines(bytes: Buffer, at: number, kind: 'head' | 'chunkSize' | 'trailers'): number {
    const end = bytes.indexOf(10, at)
    const stop = end < 0 ? bytes.length : end + 1
    this.line += bytes.toString('latin1', at, stop)
    if (end < 0) return stop
    if (kind === 'head' && !/(?:^|\n)\r?\n$/.test(this.line)) return stop
    const text = this.line
    this.line = ''
    if (kind === 'head') this.finishHead(text)
    else if (kind === 'chunkSize') this.finishSize(Number.parseInt(text, 16))
    else if (text.trim() === '') this.state = { kind: 'done' }
    return stop
  }

  private finishHead(text: string): void {
    const status = Number(/^HTTP\/1\.\d (\d{3})/.exec(text)?.[1] ?? 200)
    // The final reply follows an interim reply (1xx), so the scan continues.
    if (this.kind === 'reply' && status < 200) return
    this.head = text
    const length = /^content-length:\s*(\d+)\s*$/im.exec(text)?.[1]
    if (this.bodyless || status === 204 || status === 304) this.state = { kind: 'done' }
    else if (/^transfer-encoding:.*chunked/im.test(text)) this.state = { kind: 'chunkSize' }
    else if (length !== undefined) this.finishLength(Number(length))
    else this.state = { kind: this.kind === 'request' ? 'done' : 'untilClose' }
  }

  private finishLength(length: number): void {
    this.state = length === 0 ? { kind: 'done' } : { kind: 'length', left: length }
  }

  /** Expects the data of a chunk and its final CR LF, or the trailers after the last chunk. */
  private finishSize(size: number): void {
    this.state = size === 0 ? { kind: 'trailers' } : { kind: 'chunkData', left: size + 2 }
  }
}
