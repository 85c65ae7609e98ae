import { Pool } from 'undici'
import { expect, it, onTestFinished } from 'vitest'

import { observeReads, type UpstreamCall } from '../../src/upstream/observe-calls.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'

/** What is told of calls to an upstream; its clock goes on by 5 ms whenever it is looked at. */
function observed(url: string): { told: UpstreamCall[]; request: Pool['request'] } {
  const told: UpstreamCall[] = []
  let now = 0
  const pool = new Pool(url, { headersTimeout: 100 })
  onTestFinished(() => pool.destroy())
  const upstream = pool.compose(observeReads((call) => told.push(call), () => (now += 5))) // prettier-ignore
  return { told, request: upstream.request.bind(upstream) }
}

it('tells kind, status and time of every call that left, and leaves the answer as it is', async () => {
  const upstream = await startUpstream((seen, response) =>
    (seen.url.startsWith('/silent') ? () => undefined : replyWith(seen.url === '/x' ? 200 : 429, 'text'))(seen, response),
  ) // prettier-ignore
  const { told, request } = observed(upstream.url)
  for (const path of ['/x', '/y']) {
    const { body } = await request({ method: 'GET', path })
    expect(await body.text()).toBe('text')
  }
  await expect(request({ method: 'GET', path: '/silent' })).rejects.toThrow()
  expect(told).toEqual([
    { kind: 'read', status: 200, durationMs: 5 },
    { kind: 'read', status: 429, durationMs: 5 },
    { kind: 'read', status: undefined, durationMs: 5 },
  ])
})

it('tells nothing of a call that found no connection', async () => {
  const { told, request } = observed('http://127.0.0.1:1')
  await expect(request({ method: 'GET', path: '/' })).rejects.toThrow()
  expect(told).toEqual([])
})
