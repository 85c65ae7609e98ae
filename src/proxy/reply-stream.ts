import type { ServerResponse } from 'node:http'

import { type BatchEncoder, encodeMismatch, locationOf, type PartReply } from '../v2/index.ts'
import type { Reply } from '../writes/index.ts'
import type { ExchangeObserver } from './exchange.ts'

type Observer = Pick<ExchangeObserver, 'settled'>

/** How long a settled part may wait for others: a write of its own, which wakes the client, costs more than posting a record. */
const COALESCE_MS = 25
/** Bytes of one write: more would delay other requests. */
const MAX_PARTS = 1_000
const MAX_CHARACTERS = 1_048_576

/**
 * Streams a batch reply (batch-wire A7): parts are written in request order as soon as all before them are known, while
 * later records are still being posted. Parts that are settled shortly after each other leave in one write. A client that went away
 * changes nothing but that nothing is written.
 */
export class ReplyStream implements Reply {
  private readonly response: ServerResponse
  private readonly encoder: BatchEncoder
  private readonly changesets: number
  private readonly timing: () => string | undefined
  private readonly observer: Observer
  private readonly replies: (PartReply | undefined)[]
  private next = 0
  private begun = false
  private timer: NodeJS.Timeout | undefined

  /** `timing` gives the value of `Server-Timing` at the time when the head is sent. */
  constructor(
    response: ServerResponse,
    encoder: BatchEncoder,
    { count, changesets }: { readonly count: number; readonly changesets: number },
    timing: () => string | undefined,
    observer: Observer,
  ) {
    this.timing = timing
    this.observer = observer
    this.response = response
    this.encoder = encoder
    this.changesets = changesets
    this.replies = new Array<PartReply | undefined>(count).fill(undefined)
  }

  begin(): void {
    this.begun = true
    this.schedule()
  }

  hasLeft(): boolean {
    return this.response.headersSent
  }

  settle(index: number, reply: PartReply): void {
    if (index < this.next || this.replies[index] !== undefined) return
    this.replies[index] = reply
    this.observer.settled(index, reply)
    if (this.begun) this.schedule()
  }

  async end(): Promise<void> {
    this.begun = true
    clearTimeout(this.timer)
    let text = this.takeReady()
    while (this.replies[this.next] !== undefined) {
      this.write(text)
      await new Promise((resolve) => setImmediate(resolve))
      text = this.takeReady()
    }
    text += this.encoder.close(this.changesets)
    this.writeHead()
    if (!this.response.destroyed) this.response.end(text, 'utf8')
  }

  private schedule(): void {
    if (this.timer !== undefined || this.replies[this.next] === undefined) return
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.write(this.takeReady())
      this.schedule()
    }, COALESCE_MS)
  }

  private write(text: string): void {
    if (text === '' || this.response.destroyed || this.response.writableEnded) return
    this.writeHead()
    this.response.write(text, 'utf8')
  }

  /** The parts that are ready, as many as one turn of the event loop may write. */
  private takeReady(): string {
    let text = ''
    const end = this.next + MAX_PARTS
    for (
      let reply = this.replies[this.next];
      reply !== undefined && this.next < end && text.length < MAX_CHARACTERS;
      reply = this.replies[this.next]
    ) {
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

/** The single 200 of a batch whose ids differ, whatever became of its records (batch-wire 3). */
export function createMismatchReply(
  response: ServerResponse,
  newId: () => string,
  observer: Observer,
): Reply {
  return {
    settle: (index, reply) => observer.settled(index, reply),
    begin: () => undefined,
    hasLeft: () => false,
    end: () => {
      const { contentType, body } = encodeMismatch(newId)
      if (response.destroyed) return Promise.resolve()
      response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) })
      response.end(body)
      return Promise.resolve()
    },
  }
}

/** The answer to one flat record: the status and body that its part would have had. */
export function createRecordReply(
  response: ServerResponse,
  recordsUrl: string | undefined,
  timing: () => string | undefined,
  observer: Observer,
): Reply {
  return {
    settle: (index, part) => {
      const { status, json } = part
      observer.settled(index, part)
      if (response.headersSent || response.destroyed) return
      response.statusCode = status
      if (status < 300) response.setHeader('OData-Version', '4.0')
      const location = locationOf({ status, json }, recordsUrl)
      if (location !== undefined) response.setHeader('Location', location)
      const value = timing()
      if (value !== undefined) response.setHeader('Server-Timing', value)
      if (json !== undefined) response.setHeader('Content-Type', 'application/json; odata.metadata=minimal')
      response.end(json)
    },
    begin: () => undefined,
    hasLeft: () => response.headersSent,
    end: () => Promise.resolve(),
  }
}
