import { createServer } from 'node:http'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'

import { serveCommands } from './child.ts'

// V2 of the benchmark of live comparison, and a V3 that is stalled. V2 has a batch answered by the sandbox once, and from then on gives
// the same reply to every batch that begins with the same learner and event: so its replies cost next to nothing, and the marks
// that they name are those that the sandbox shows as V3. Argument: the port of the sandbox's V2.

interface Kept {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const [, , sandboxPort] = process.argv
const kept = new Map<string, Promise<Kept>>()

async function post(path: string, headers: Record<string, string>, body: Buffer): Promise<Kept> {
  const reply = await fetch(`http://127.0.0.1:${sandboxPort ?? ''}${path}`, { method: 'POST', headers, body })
  const bytes = Buffer.from(await reply.arrayBuffer())
  const type = reply.headers.get('content-type') ?? ''
  const version = reply.headers.get('odata-version') ?? '4.0'
  return {
    status: reply.status,
    headers: { 'Content-Type': type, 'OData-Version': version, 'Content-Length': String(bytes.length) },
    body: bytes,
  }
}

function keyOf(body: Buffer): string {
  const at = body.indexOf('"Learner"')
  return body.toString('latin1', at, at + 120)
}

const v2 = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const key = keyOf(body)
    const {
      authorization = '',
      'content-type': type = '',
      'ocp-apim-subscription-key': own,
    } = request.headers
    const headers = { authorization, 'content-type': type, 'ocp-apim-subscription-key': String(own) }
    const reply = kept.get(key) ?? post(request.url ?? '', headers, body)
    kept.set(key, reply)
    void reply.then((known) => response.writeHead(known.status, known.headers).end(known.body))
  })
})

const stalled = createPlainServer((socket) => {
  socket.on('error', () => socket.destroy()).resume()
})
v2.listen(0, '127.0.0.1', () => {
  stalled.listen(0, '127.0.0.1', () => {
    const portOf = (server: typeof stalled): number => (server.address() as AddressInfo).port
    serveCommands({ port: portOf(v2), stalledPort: portOf(stalled) }, {})
  })
})
