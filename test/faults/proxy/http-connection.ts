import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

import type { Fault } from './fault.ts'
import { MessageScanner } from './message-scanner.ts'

/** Decides the faults of the requests of a connection, and observes and changes the requests. */
export interface RequestHandler {
  readonly decide: (head: string) => Fault
  /** Called just before a request is forwarded. The returned function gets the status and the head of the reply, if a reply arrives. */
  readonly onForward: (bytes: Buffer) => (status: number, head: string) => void
  /** Returns the request that the service receives. */
  readonly rewrite: (bytes: Buffer) => Buffer
}

/** The time between the pieces of a slow reply. */
const SLOW_TICK_MS = 50

/**
 * Serves one connection of a client, request by request. Each request is read completely, forwarded over one connection to the service, and
 * answered as `handler` says. Resolves when the connection is over.
 */
export async function serveHttp(client: Socket, upstream: Socket, handler: RequestHandler): Promise<void> {
  const requests = new ByteSource(client)
  const replies = new ByteSource(upstream)
  client.once('close', () => upstream.destroy())
  for (;;) {
    const request = await readRequest(requests)
    if (request === undefined) break
    const fault = handler.decide(request.head)
    if (fault.kind === 'resetBefore') break
    const onStatus = handler.onForward(request.bytes)
    upstream.write(handler.rewrite(request.bytes))
    const scanner = new MessageScanner('reply', request.head.startsWith('HEAD '))
    const onHead = (head: string): void => {
      const status = /^HTTP\/1\.\d (\d{3})/.exec(head)?.[1]
      if (status !== undefined) onStatus(Number(status), head)
    }
    if (!(await relayReply(replies, scanner, client, fault, onHead))) break
  }
  client.resetAndDestroy()
  upstream.destroy()
}

async function readRequest(source: ByteSource): Promise<{ head: string; bytes: Buffer } | undefined> {
  const scanner = new MessageScanner('request')
  const pieces: Buffer[] = []
  for (;;) {
    const piece = await source.read()
    if (piece === undefined) return undefined
    const { used, done } = scanner.push(piece)
    pieces.push(piece.subarray(0, used))
    if (!done) continue
    source.putBack(piece.subarray(used))
    return { head: scanner.head ?? '', bytes: Buffer.concat(pieces) }
  }
}

/** Passes one reply on. `onHead` is called before the first byte leaves. Returns false if the connection must break now. */
async function relayReply(
  source: ByteSource,
  scanner: MessageScanner,
  client: Socket,
  fault: Fault,
  onHead: (head: string) => void,
): Promise<boolean> {
  let left = fault.kind === 'truncate' ? fault.bytes : Infinity
  let first = true
  let isHeard = false
  for (;;) {
    const piece = await source.read()
    if (piece === undefined) return false
    const { used, done } = scanner.push(piece)
    if (!isHeard && scanner.head !== undefined) {
      isHeard = true
      onHead(scanner.head)
    }
    if (first && fault.kind === 'stall') await delay(fault.ms)
    first = false
    const passed = fault.kind === 'resetAfter' ? 0 : Math.min(used, left)
    left -= passed
    await write(client, piece.subarray(0, passed), fault)
    if (left <= 0) return false
    if (!done) continue
    source.putBack(piece.subarray(used))
    // A reply that is shorter than the limit of `truncate` also breaks the connection.
    return fault.kind !== 'resetAfter' && fault.kind !== 'truncate'
  }
}

async function write(client: Socket, bytes: Buffer, fault: Fault): Promise<void> {
  if (fault.kind !== 'slow') {
    if (bytes.length > 0) client.write(bytes)
    return
  }
  const step = Math.max(1, Math.floor((fault.bytesPerSecond * SLOW_TICK_MS) / 1000))
  for (let at = 0; at < bytes.length && !client.destroyed; at += step) {
    client.write(bytes.subarray(at, at + step))
    await delay(SLOW_TICK_MS)
  }
}

/** Reads a socket piece by piece. Surplus bytes can be put back. A broken connection reads like a closed one. */
class ByteSource {
  private readonly pieces: AsyncIterator<Buffer>
  private rest: Buffer | undefined

  constructor(socket: Socket) {
    this.pieces = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  }

  /** Returns the next piece, or `undefined` at the end. */
  async read(): Promise<Buffer | undefined> {
    const { rest } = this
    this.rest = undefined
    if (rest !== undefined) return rest
    try {
      const next = await this.pieces.next()
      return next.done === true ? undefined : next.value
    } catch {
      return undefined // The connection was reset, which the socket's error handler ignores.
    }
  }

  putBack(bytes: Buffer): void {
    if (bytes.length > 0) this.rest = bytes
  }
}
