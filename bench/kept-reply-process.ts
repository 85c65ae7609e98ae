import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'

import { serveCommands } from './child.ts'

// V2 and V3 of the benchmark of live comparison, and a V3 that never answers. V2 asks the sandbox for the reply to a batch only once, and
// then sends that reply to every batch that begins with the same learner and event. V3 does the same for equal reads. So the replies take
// almost no processor time, as if the services were on other machines. Arguments: the ports of the sandbox's V2 and V3.

interface Kept {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const [, , v2Port = '', v3Port = ''] = process.argv
const kept = new Map<string, Promise<Kept>>()

async function ask(url: string, init: RequestInit): Promise<Kept> {
  const reply = await fetch(url, init)
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
    const url = `http://127.0.0.1:${v2Port}${request.url ?? ''}`
    const reply = kept.get(key) ?? ask(url, { method: 'POST', headers, body })
    kept.set(key, reply)
    void reply.then((known) => response.writeHead(known.status, known.headers).end(known.body))
  })
})

const v3 = createServer((request, response) => {
  const { url = '', headers } = request
  const own = {
    authorization: headers.authorization ?? '',
    'ocp-apim-subscription-key': String(headers['ocp-apim-subscription-key']),
  }
  const reply = kept.get(url) ?? ask(`http://127.0.0.1:${v3Port}${url}`, { headers: own })
  kept.set(url, reply)
  void reply.then((known) => response.writeHead(known.status, known.headers).end(known.body))
})

const stalled = createPlainServer((socket) => {
  socket.on('error', () => socket.destroy()).resume()
})
const portOf = async (server: typeof stalled): Promise<number> => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}
serveCommands({ v2Port: await portOf(v2), v3Port: await portOf(v3), stalledPort: await portOf(stalled) }, {})
