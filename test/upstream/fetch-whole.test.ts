import { type Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { expect, it, onTestFinished } from 'vitest'

import { fetchJson } from '../../src/upstream/fetch-whole.ts'
import { createReaderConnections, createWholeReader, parseJson } from '../../src/upstream/index.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'

it('fetchJson reads a whole reply over its own connections, even if the process-wide dispatcher never responds', async () => {
  const upstream = await startUpstream(replyWith(200, { value: [] }))
  const usual = getGlobalDispatcher()
  setGlobalDispatcher({ dispatch: () => true } as unknown as Dispatcher)
  const connections = createReaderConnections(1, { connectMs: 1_000, headersMs: 1_000 })
  const reader = createWholeReader(connections, 1_000)
  onTestFinished(async () => {
    setGlobalDispatcher(usual)
    await reader.close()
  })
  const url = new URL(upstream.url)

  expect(await fetchJson(url, { headers: {} }, 2_000)).toEqual({ status: 200, json: { value: [] } })
  const reply = await reader.get(url, {}, 2_000)
  expect(reply?.contentType).toBe('application/json')
  expect(parseJson(reply?.body.toString('utf8') ?? '')).toEqual({ value: [] })
})
