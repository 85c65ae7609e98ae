import type { ServerResponse } from 'node:http'

import type { BatchEncoder, PartReply } from '../v2/index.ts'

/** How long a settled part may wait for others: a write of its own costs more than posting the record did. */
const COALESCE_MS = 5

/**
 * Streams a batch reply (batch-wire A7): parts are written in request order as soon as all before them are known, while
 * later records are still being posted. Parts that are settled within a few milliseconds leave in one write. A client that went away
 * changes nothing but that nothing is written.
 */
export class ReplyStream {
  private readonly response: ServerResponse
  private readonly encoder: BatchEncoder
  private readonly timing: () => string | undefined
  private readonly replies: (PartReply | undefined)[]
  private next = 0
  private begun = false
  private scheduled = false

  /** `timing` gives the value of `Server-Timing` at the time when the head is sent. */
  constructor(
    response: ServerResponse,
    encoder: BatchEncoder,
    count: number,
    timing: () => string | undefined = () => undefined,
  ) {
    this.timing = timing
    this.response = response
    this.encoder = encoder
    this.replies = new Array<PartReply | undefined>(count).fill(undefined)
  }

  /** Sends the status line with the first write; until then the request may still be answered otherwise. */
  begin(): void {
    this.begun = true
    this.schedule()
  }

  /** Sets the answer of the record at `index`. */
  settle(index: number, reply: PartReply): void {
    this.replies[index] = reply
    if (this.begun) this.schedule()
  }

  /** Writes what is left and ends the reply; every record has been settled by then. */
  end(changesets: number): void {
    this.begun = true
    const text = this.takeReady() + this.encoder.close(changesets)
    this.writeHead()
    if (!this.response.destroyed) this.response.end(text, 'utf8')
  }

  private schedule(): void {
    if (this.scheduled || this.replies[this.next] === undefined) return
    this.scheduled = true
    setTimeout(() => {
      this.scheduled = false
      const text = this.takeReady()
      if (text === '' || this.response.destroyed || this.response.writableEnded) return
      this.writeHead()
      this.response.write(text, 'utf8')
    }, COALESCE_MS)
  }

  private takeReady(): string {
    let text = ''
    for (let reply = this.replies[this.next]; reply !== undefined; reply = this.replies[this.next]) {
      text += this.encoder.part(reply)
      this.replies[this.next] = undefined
      this.next += 1
    }
    return text
  }

  private writeHead(): void {
    if (this.response.headersSent || this.response.destroyed) return
    const timing = this.timing()
    if (timing !== undefined) this.response.setHeader('Server-Timing', timing)
    this.response.writeHead(200, { 'Content-Type': this.encoder.contentType })
  }
}
