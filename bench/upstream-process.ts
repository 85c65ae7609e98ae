import { createServer, type Socket } from 'node:net'

import { cpuMs, serveCommands } from './child.ts'
import { guid } from './legacy-batch.ts'

// The V3 service of the benchmarks. It answers every posted record with 201, a new ExternalID and the posted values (service.md 4), in a
// single POST and in a $batch in either format. It uses plain sockets, because a node:http server would be slower than the measured client.

const BODY_LENGTH = Buffer.from('\r\ncontent-length: ')
const CONTEXT = '"@odata.context":"https://service.example/$metadata#AttendanceRecords/$entity"'
const ID_MEMBER = '"ExternalID":"00000000-0000-0000-0000-000000000000"'

let posts = 0

function answer(socket: Socket, body: Buffer): void {
  const text = body.toString('latin1')
  if (text.startsWith('--')) sendReply(socket, '200 OK', 'multipart/mixed; boundary=r', replyInParts(text))
  else if (text.startsWith('{"requests":')) sendReply(socket, '200 OK', JSON_TYPE, replyAsJson(text))
  else if (text.startsWith(`{${ID_MEMBER}`)) sendReply(socket, '201 Created', JSON_TYPE, replyTo(text))
  else socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')
}

const JSON_TYPE = 'application/json; odata.metadata=minimal'

function sendReply(socket: Socket, status: string, type: string, body: string): void {
  socket.write(
    `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n` +
      `OData-Version: 4.0\r\nDate: Thu, 05 Sep 2024 08:00:00 GMT\r\n\r\n${body}`,
    'latin1',
  )
}

/** Counts a posted record, and returns the JSON of the created record. */
function replyTo(record: string): string {
  posts += 1
  return `{${CONTEXT},"ExternalID":"${guid(7, posts)}"${record.slice(ID_MEMBER.length + 1, -1)},"fabricated":null}`
}

function replyInParts(batch: string): string {
  const records = batch.split('\r\n\r\n').filter((piece) => piece.startsWith(`{${ID_MEMBER}`))
  const parts = records.map(
    (piece, index) =>
      `--r\r\nContent-Type: application/http\r\nContent-ID: ${index + 1}\r\n\r\n` +
      `HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\r\n${replyTo(piece.slice(0, piece.indexOf('\r\n')))}\r\n`,
  )
  return `${parts.join('')}--r--\r\n`
}

function replyAsJson(batch: string): string {
  const [, ...pieces] = batch.split('"body":')
  const responses = pieces.map((piece, index) => {
    // The last record is followed by the ends of its request, of the list and of the batch.
    const end = index === pieces.length - 1 ? -'}]}'.length : piece.lastIndexOf('},{"id":')
    return `{"id":"${index + 1}","status":201,"headers":{},"body":${replyTo(piece.slice(0, end))}}`
  })
  return `{"responses":[${responses.join(',')}]}`
}

/** Answers the requests on one connection, even if a request arrives in several chunks. */
function serve(socket: Socket): void {
  let pending: Buffer = Buffer.alloc(0)
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    for (let head = pending.indexOf('\r\n\r\n'); head !== -1; head = pending.indexOf('\r\n\r\n')) {
      const length = lengthOf(pending, head)
      const end = head + 4 + length
      if (pending.length < end) return
      answer(socket, pending.subarray(head + 4, end))
      pending = pending.subarray(end)
    }
  })
}

function lengthOf(bytes: Buffer, headEnd: number): number {
  const at = bytes.indexOf(BODY_LENGTH)
  if (at === -1 || at > headEnd) return 0
  return Number.parseInt(bytes.toString('latin1', at + BODY_LENGTH.length, headEnd), 10)
}

const server = createServer(serve)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  serveCommands({ port }, { count: () => ({ posts, cpuMs: cpuMs() }) })
})
