import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

import { onTestFinished } from 'vitest'

interface RunningProxy {
  readonly url: string
  readonly port: number
  /** The target and the credentials of each request for a tunnel, such as `CONNECT v3.test:443 Basic …`. */
  readonly asked: string[]
}

/**
 * Starts an HTTP proxy until the end of the test. The proxy opens each tunnel to `target`, even if the client names another host, or
 * refuses with `status`, or never answers if it is silent.
 */
export async function startProxy({
  status,
  target,
  isSilent = false,
}: {
  readonly status?: number
  readonly isSilent?: boolean
  readonly target?: number
}): Promise<RunningProxy> {
  const asked: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(500).end()
  })
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push(['CONNECT', url, headers['proxy-authorization'] ?? []].flat().join(' '))
    client.on('error', () => undefined)
    if (isSilent) return
    if (status !== undefined) {
      client.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 2\r\n\r\nno`)
      return
    }
    const upstream = connect(target ?? Number(url.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(upstream).pipe(client)
    })
    sockets.add(upstream)
    upstream.on('error', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, asked }
}
