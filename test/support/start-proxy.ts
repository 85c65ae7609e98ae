import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

import { onTestFinished } from 'vitest'

interface RunningProxy {
  readonly url: string
  readonly port: number
  /**
   * Each request for a tunnel with its target and credentials, such as `CONNECT v3.test:443 Basic …`, and each other request with its URL.
   */
  readonly asked: string[]
}

/**
 * Starts an HTTP proxy until the end of the test. The proxy opens each tunnel to the loopback port `target`, by default the port that the
 * client names. With `status` the proxy refuses each tunnel with this status, and with `isSilent` it never answers.
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
