import type { Socket } from 'node:net'

/** Reads a socket piece by piece; what was read too much can be put back. A broken connection is an end like any other. */
export class ByteSource {
  private readonly pieces: AsyncIterator<Buffer>
  private rest: Buffer | undefined

  constructor(socket: Socket) {
    this.pieces = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  }

  /** The next piece; undefined at the end. */
  async read(): Promise<Buffer | undefined> {
    const { rest } = this
    this.rest = undefined
    if (rest !== undefined) return rest
    try {
      const next = await this.pieces.next()
      return next.done === true ? undefined : next.value
    } catch {
      return undefined // reset: the socket's own handler has seen it
    }
  }

  putBack(bytes: Buffer): void {
    if (bytes.length > 0) this.rest = bytes
  }
}
