import { createServer, type Socket } from 'node:net'

import { cpuMs, serveCommands } from './child.ts'

// The service of the pass-through and relay benchmarks. It answers every request with a page of about 2 KB of JSON, whose next link has the
// address of this process, as in the real service. It uses plain sockets, so that it is faster than every measured proxy.

let requests = 0
let reply: Buffer

function pageOf(port: number): Buffer {
  const row = (index: number): string =>
    `{"ExternalID":"00000000-0000-4000-8000-${String(index).padStart(12, '0')}","Description":"A group of learners","Active":true}`
  const rows = Array.from({ length: 16 }, (_, index) => row(index)).join(',')
  const json = `{"@odata.context":"https://service.example/$metadata#LearnerGroups","value":[${rows}],"@odata.nextLink":"http://127.0.0.1:${port}/Learner/V3/LearnerGroups?$skiptoken=16"}`
  const head = [
    'HTTP/1.1 200 OK',
    'Content-Type: application/json; odata.metadata=minimal; odata.streaming=true',
    `Content-Length: ${json.length}`,
    'OData-Version: 4.0',
    'Cache-Control: no-cache',
    'Request-Context: appId=cid-v1:00000000-0000-4000-8000-000000000000',
    'Strict-Transport-Security: max-age=31536000',
    'X-Content-Type-Options: nosniff',
    'Date: Thu, 05 Sep 2024 08:00:00 GMT',
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${json}`)
}

function serve(socket: Socket): void {
  let pending = ''
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    pending += chunk.toString('latin1')
    for (let end = pending.indexOf('\r\n\r\n'); end !== -1; end = pending.indexOf('\r\n\r\n')) {
      pending = pending.slice(end + 4)
      requests += 1
      socket.write(reply)
    }
  })
}

const server = createServer(serve)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  reply = pageOf(port)
  serveCommands({ port }, { count: () => ({ requests, cpuMs: cpuMs() }) })
})
