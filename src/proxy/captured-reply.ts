import type { HeldBytes } from './byte-budget.ts'

/** The head of a reply as the client gets it, without the fields of its own connection. */
export interface RelayedHead {
  readonly status: number
  readonly reason: string
  /** Name, value, name, value. */
  readonly fields: readonly string[]
}

/** The reply that a client got, or would have got. */
export interface CapturedReply extends RelayedHead {
  readonly trailers: readonly (readonly [name: string, value: string])[]
  /** Undefined: it was larger than allowed. */
  readonly body: Buffer | undefined
}

/** Keeps a copy of a reply, as far as its bound and the budget of bytes allow. */
export class ReplyCapture {
  private readonly maxBytes: number
  private readonly held: HeldBytes
  private pieces: Buffer[] | undefined = []
  private size = 0

  constructor(maxBytes: number, held: HeldBytes) {
    this.maxBytes = maxBytes
    this.held = held
  }

  add(chunk: Buffer): void {
    if (this.pieces === undefined) return
    this.size += chunk.length
    if (this.size > this.maxBytes || !this.mayHold(chunk.length)) this.pieces = undefined
    else this.pieces.push(chunk)
  }

  take(head: RelayedHead, trailers: CapturedReply['trailers']): CapturedReply {
    return { ...head, trailers, body: this.pieces && Buffer.concat(this.pieces) }
  }

  private mayHold(count: number): boolean {
    try {
      this.held.take(count)
      return true
    } catch {
      // The reply itself goes on: only its copy is given up.
      return false
    }
  }
}
