import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { expect, it, onTestFinished } from 'vitest'

import { fetchJson } from '../../src/upstream/fetch-whole.ts'
import { createReaderConnections, createWholeReader, parseJson } from '../../src/upstream/index.ts'

it('is read over connections of its own, where the one of all of the process never answers', async () => {
  const server = createServer((_request, response) => response.end('{"value":[]}')).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const usual = getGlobalDispatcher()
  setGlobalDispatcher({ dispatch: () => true } as unknown as Dispatcher)
  const connections = createReaderConnections(1, { connectMs: 1_000, headersMs: 1_000 })
  const reader = createWholeReader(connections, 1_000)
  onTestFinished(async () => {
    setGlobalDispatcher(usual)
    await reader.close()
    server.close()
  })
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)

  expect(await fetchJson(url, { headers: {} }, 2_000)).toEqual({ status: 200, json: { value: [] } })
  expect(parseJson((await reader.get(url, {}, 2_000))?.body)).toEqual({ value: [] })
})
