import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

import { serveCommands } from './child.ts'
import { median } from './rounds.ts'

// Clients on plain sockets that repeatedly request a page and read the whole reply. The command `<port>` runs one round with the candidate
// at that port. Arguments: the number of clients, the length of a round in ms, the target of the requests, and the ports of the candidates.

const [clients = 32, durationMs = 1_000] = process.argv.slice(2, 4).map(Number)
const [target = '/', ...ports] = process.argv.slice(4)

/** Sends a request and reads its reply to the end. Rejects if the reply is not a page. */
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

async function drive(port: number): Promise<{ requests: number; ms: number; p50Ms: number }> {
  const sockets = await Promise.all(
    Array.from({ length: clients }, async () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      await once(socket, 'connect')
      return socket
    }),
  )
  const head = [
    `GET ${target} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'User-Agent: bench',
    'Accept: application/json',
    'Authorization: bearer bench',
    'Ocp-Apim-Subscription-Key: bench',
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
  const times: number[] = []
  const start = performance.now()
  await Promise.all(
    sockets.map(async (socket) => {
      for (let begin = start; begin - start < durationMs;) {
        await get(socket, request)
        const end = performance.now()
        times.push(end - begin)
        begin = end
      }
    }),
  )
  const ms = performance.now() - start
  for (const socket of sockets) socket.destroy()
  return { requests: times.length, ms, p50Ms: median(times) }
}

serveCommands({}, Object.fromEntries(ports.map((port) => [port, () => drive(Number(port))])))
