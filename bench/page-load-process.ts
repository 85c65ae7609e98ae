import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

import { serveCommands } from './child.ts'

// Clients that ask for a page, read the whole reply and ask again, on bare sockets. `run <port>` drives one candidate.
// Arguments: clients, ms.

const [clients = 32, durationMs = 1_000] = process.argv.slice(2).map(Number)

/** Sends a request and reads its reply to the end. Fails for what is no page. */
function get(socket: Socket, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const finish = (settle: () => void): void => {
      socket.off('data', onData).off('close', onClose)
      settle()
    }
    const onClose = (): void => finish(() => reject(new Error(`the connection was closed: ${text}`)))
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      if (!isWhole(text)) return
      if (text.startsWith('HTTP/1.1 200 ') && text.includes('"value":[')) finish(resolve)
      else finish(() => reject(new Error(text)))
    }
    socket.on('data', onData).on('close', onClose)
    socket.write(request)
  })
}

function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n')
  if (head === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= head + 4 + Number(length)
}

async function drive(port: number): Promise<{ requests: number; ms: number }> {
  const sockets = await Promise.all(
    Array.from({ length: clients }, async () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      await once(socket, 'connect')
      return socket
    }),
  )
  const head = [
    'GET /Learner/V3/LearnerGroups?$top=16 HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'User-Agent: bench',
    'Accept: application/json',
    'Authorization: bearer bench',
    'Ocp-Apim-Subscription-Key: bench',
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
  let requests = 0
  const start = performance.now()
  await Promise.all(
    sockets.map(async (socket) => {
      for (; performance.now() - start < durationMs; requests += 1) await get(socket, request)
    }),
  )
  const ms = performance.now() - start
  for (const socket of sockets) socket.destroy()
  return { requests, ms }
}

serveCommands({}, Object.fromEntries(process.argv.slice(4).map((port) => [port, () => drive(Number(port))])))
