import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

import { serveCommands } from './child.ts'
import { legacyBatch } from './legacy-batch.ts'
import { median } from './rounds.ts'

// V2 clients, each with its own learners. A client sends a batch of 30, reads the whole reply, and then sends the next batch. The clients
// use plain sockets, which take little processor time from the adapter. Each round also returns the median time from the first byte of
// a batch to the last byte of its reply. Arguments: the port of the adapter, the number of clients, and the length of a round in ms.

const RECORDS = 30
const [port, clients, durationMs] = process.argv.slice(2).map(Number)
const CREATED = 'HTTP/1.1 201 Created\r\n'
/** The bytes that end a chunked body (RFC 9112, 7.1). */
const END = '\r\n0\r\n\r\n'

/** A connection, and the request that the client sends on it repeatedly. */
interface Client {
  readonly socket: Socket
  readonly request: Buffer
  /** The offsets in the request at which the id of the batch occurs. */
  readonly ids: readonly number[]
}

let sent = 0
/** The times of the batches of this round. */
let batchMs: number[] = []

async function openClient(index: number): Promise<Client> {
  const { bytes, contentType } = legacyBatch(RECORDS, 0x7fffffff, index * RECORDS)
  const head = [
    'POST /V2/Attendance/$batch HTTP/1.1',
    `Host: 127.0.0.1:${port ?? 0}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${bytes.length}`,
    'Authorization: bearer bench',
    'Ocp-Apim-Subscription-Key: bench',
  ]
  const request = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes])
  const id = contentType.slice(-12)
  const ids: number[] = []
  for (let at = request.indexOf(id); at !== -1; at = request.indexOf(id, at + 12)) ids.push(at)
  const socket = connect({ port: port ?? 0, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return { socket, request, ids }
}

/** Sends a batch and reads its reply to the end. Gives the batch a new id, because equal bytes would be a repeated request. */
async function sendBatch({ socket, request, ids }: Client): Promise<void> {
  const start = performance.now()
  sent += 1
  const own = sent.toString(16).padStart(12, '0')
  for (const at of ids) request.write(own, at, 'latin1')
  socket.write(request)
  const { status, created } = await readReply(socket)
  if (status !== '200' || created !== RECORDS) throw new Error(`${status}, ${created} of ${RECORDS} created`)
  batchMs.push(performance.now() - start)
}

function readReply(socket: Socket): Promise<{ status: string; created: number }> {
  return new Promise((resolve, reject) => {
    let status: string | undefined
    let created = 0
    let rest = ''
    const finish = (settle: () => void): void => {
      socket.off('data', onData).off('close', onClose)
      settle()
    }
    const onClose = (): void => finish(() => reject(new Error('the connection was closed')))
    const onData = (chunk: Buffer): void => {
      const text = rest + chunk.toString('latin1')
      status ??= text.slice(9, 12)
      let from = 0
      for (let at = text.indexOf(CREATED); at !== -1; at = text.indexOf(CREATED, from)) {
        created += 1
        from = at + CREATED.length
      }
      const end = status
      if (text.endsWith(END)) finish(() => resolve({ status: end, created }))
      // Keeps the end of the text, which may be the first part of a line that the next chunk completes.
      rest = text.slice(Math.max(from, text.length - CREATED.length + 1))
    }
    socket.on('data', onData).on('close', onClose)
  })
}

serveCommands(
  {},
  {
    run: async () => {
      // Each round opens its own connections, because the adapter closes connections that are idle while another candidate is measured.
      const connections = await Promise.all(
        Array.from({ length: clients ?? 16 }, (_, index) => openClient(index)),
      )
      const before = sent
      batchMs = []
      const start = performance.now()
      await Promise.all(
        connections.map(async (client) => {
          while (performance.now() - start < (durationMs ?? 1000)) await sendBatch(client)
        }),
      )
      const ms = performance.now() - start
      for (const { socket } of connections) socket.destroy()
      return { marks: (sent - before) * RECORDS, ms, batchMs: median(batchMs) }
    },
  },
)
