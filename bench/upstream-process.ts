import { createServer, type Socket } from 'node:net'

import { cpuMs, serveCommands } from './child.ts'
import { guid } from './legacy-batch.ts'

// The V3 service of the benchmark: answers every POST 201 with a new ExternalID and the posted values (service.md 4). It
// speaks HTTP over plain sockets, because a node:http server would be slower than the client that is measured.

const BODY_LENGTH = Buffer.from('\r\ncontent-length: ')
const CONTEXT = '"@odata.context":"https://service.example/$metadata#AttendanceRecords/$entity"'
const ID_MEMBER = '"ExternalID":"00000000-0000-0000-0000-000000000000"'

let posts = 0

function answer(socket: Socket, body: Buffer): void {
  posts += 1
  const json = body.toString('latin1')
  if (!json.startsWith(`{${ID_MEMBER}`)) {
    socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')
    return
  }
  const reply = `{${CONTEXT},"ExternalID":"${guid(7, posts)}"${json.slice(ID_MEMBER.length + 1, -1)},"fabricated":null}`
  socket.write(
    'HTTP/1.1 201 Created\r\nContent-Type: application/json; odata.metadata=minimal\r\n' +
      `Content-Length: ${reply.length}\r\nOData-Version: 4.0\r\nDate: Thu, 05 Sep 2024 08:00:00 GMT\r\n\r\n${reply}`,
    'latin1',
  )
}

/** Takes the requests out of the bytes of one connection, however they were cut. */
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
