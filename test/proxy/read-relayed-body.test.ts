import { createServer, request as ask } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

import { expect, it, onTestFinished } from 'vitest'

import { readRelayedBody } from '../../src/proxy/read-relayed-body.ts'

const held = { take: () => undefined, release: () => undefined }

it('refuses the body of a client that went away while its write was held', async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const server = createServer((request) => {
    request.once('close', () => {
      readRelayedBody(request, 1_000, held).then(resolve, resolve)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const client = ask({ port, host: '127.0.0.1', method: 'POST', headers: { 'Content-Length': '10' } })
  client.on('error', () => undefined)
  client.write('half')
  await once(client, 'socket')
  server.once('request', () => client.destroy())
  expect(await promise).toMatchObject({ code: 'ADP_BODY' })
})
