import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

import { onTestFinished } from 'vitest'

/** A service on raw sockets, which keeps the exact bytes that arrive and answers with the bytes of the test. */
export interface RawUpstream {
  readonly url: string
  readonly port: number
  /** The bytes of each connection so far, one character per byte. */
  readonly seen: string[]
  /** Resolves with the bytes of a connection once they contain `wanted`. */
  until(wanted: string | RegExp, connection?: number): Promise<string>
}

/** Starts the service. `answer` is called with each piece that arrives and with everything that arrived on its connection. */
export async function startRawUpstream(
  answer: (socket: Socket, seen: string, piece: string) => void,
): Promise<RawUpstream> {
  const seen: string[] = []
  const sockets = new Set<Socket>()
  let wake: (() => void)[] = []
  const server = createServer((socket) => {
    const at = seen.push('') - 1
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      const piece = chunk.toString('latin1')
      seen[at] = (seen[at] ?? '') + piece
      for (const one of wake.splice(0)) one()
      answer(socket, seen[at], piece)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    wake = []
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    until: async (wanted, connection = 0) => {
      for (;;) {
        const text = seen[connection] ?? ''
        if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return text
        await new Promise<void>((resolve) => wake.push(resolve))
      }
    },
  }
}

/** Answers each piece with these bytes, once the head of the first request is complete. A body must arrive together with its head. */
export function replyWithBytes(reply: string, ends = false): (socket: Socket, seen: string) => void {
  return (socket, seen) => {
    if (!seen.includes('\r\n\r\n')) return
    const bytes = Buffer.from(reply, 'latin1')
    if (ends) socket.end(bytes)
    else socket.write(bytes)
  }
}

/** Writes the text repeatedly until the other side has closed. */
export function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => {
    if (socket.destroyed) clearInterval(timer)
    else socket.write(text)
  }, 20)
}
