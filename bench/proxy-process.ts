import { Agent } from 'node:http'
import { createRequire } from 'node:module'

import express, { type Handler } from 'express'
import { Pool } from 'undici'
import * as z from 'zod'

import { cpuMs, serveCommands } from './child.ts'

// A proxy on Express 5 that only relays. Arguments: `undici` or `middleware`, and the address of the upstream.

const [kind, target = ''] = process.argv.slice(2)
const app = express()
if (kind === 'undici') {
  const pool = new Pool(target, { connections: 32, pipelining: 1 })
  app.use((request, response, next) => {
    const { method, url: path } = request
    // undici sends no header whose value is undefined.
    const headers = { ...request.headers, host: undefined, connection: undefined }
    pool
      .stream({ method, path, headers, opaque: response }, ({ statusCode, headers: fields, opaque }) =>
        opaque.writeHead(statusCode, fields),
      )
      .catch(next)
  })
} else {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  // Only this folder installs the package, so the code must compile without its types.
  const loaded: unknown = createRequire(import.meta.url)('http-proxy-middleware')
  const peer = z.object({ createProxyMiddleware: z.custom<(options: object) => Handler>() }).parse(loaded)
  app.use(peer.createProxyMiddleware({ target, agent, changeOrigin: true }))
}
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  serveCommands({ port }, { cpu: () => ({ cpuMs: cpuMs() }) })
})
