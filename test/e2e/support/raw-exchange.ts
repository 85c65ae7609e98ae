import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'

import { type RawMessage, readMessage } from './raw-message.ts'

/**
 * Writes a request byte for byte over a TCP connection, in pieces cut at `cuts`, and reads the reply. `onText` gets the whole received text
 * each time that more arrives. A server may answer and close the connection before the request is complete.
 */
export async function exchange(
  port: number,
  bytes: Buffer,
  cuts: readonly number[],
  onText: (text: string) => void,
): Promise<RawMessage> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const received: Buffer[] = []
  const reply = new Promise<RawMessage>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk)
      const all = Buffer.concat(received)
      onText(all.toString('utf8'))
      const message = readMessage(all)
      if (message !== undefined) resolve(message)
    })
    socket.on('close', () => {
      reject(new Error(`the connection was closed after: ${Buffer.concat(received).toString('utf8')}`))
    })
    // Ignores a reset: `close` follows, and rejects the reply unless it has arrived.
    socket.on('error', () => undefined)
  })
  const ends = [...cuts, bytes.length]
  for (const [index, end] of ends.entries()) {
    if (socket.writable) socket.write(bytes.subarray(ends[index - 1] ?? 0, end))
    await setImmediate()
  }
  const message = await reply
  socket.destroy()
  return message
}
