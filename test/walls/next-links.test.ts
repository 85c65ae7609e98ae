import { createHmac } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'

import { expect, test } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { journalFile } from '../e2e/support/journal-file.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'
import { type Answer, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'

const RECORDS = '/V2/Attendance/AttendanceRecords'
const week =
  '$filter=AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-07T00:00:00Z'

/** Reads a first page of five marks as a client, and returns the path and the query of its next link. */
async function firstLink(adapter: Adapter, key: string): Promise<string> {
  const path = `${RECORDS}?${week.replaceAll(' ', '%20')}`
  const headers = { ...credentialsOf(key), Prefer: 'odata.maxpagesize=5' }
  const { text } = await adapter.request('GET', path, { headers })
  const link = new URL((JSON.parse(text) as { '@odata.nextLink': string })['@odata.nextLink'])
  return link.pathname + link.search
}

function credentialsOf(key: string): Record<string, string> {
  return { 'Ocp-Apim-Subscription-Key': key, Authorization: 'bearer sandbox' }
}

async function statusOf(adapter: Adapter, path: string, key: string): Promise<number> {
  return (await adapter.request('GET', path, { headers: credentialsOf(key) })).status
}

test('a next link of one client is invalid for another client, even if both clients use the same V3 key', async () => {
  const sandbox = await startSandbox({ keys: ['x', 'y'] })
  const partners = [{ id: 'all', match: { any: true }, clients: 'open', v3: { subscriptionKey: new Secret('sandbox') } }]
  const adapter = await startAdapter(sandbox.url, { partners })
  const link = await firstLink(adapter, 'x')
  expect(await statusOf(adapter, link, 'y')).toBe(400)
  expect(await statusOf(adapter, link, 'x')).toBe(200)
}) // prettier-ignore

test('a next link is valid after a restart with the same journal, and invalid after a restart without it', async () => {
  const sandbox = await startSandbox()
  const settings = { journal: journalFile() }
  const first = await startAdapter(sandbox.url, settings)
  const link = await firstLink(first, 'sandbox')
  await first.app.close()
  expect(await statusOf(await startAdapter(sandbox.url, settings), link, 'sandbox')).toBe(200)
  expect(await statusOf(await startAdapter(sandbox.url), link, 'sandbox')).toBe(400)
}) // prettier-ignore

test('an invented next link gets 400 without a call to V3, whatever its signature', async () => {
  const empty: Answer = (_seen, response) => void response.end('{"value":[]}')
  const upstream = await startUpstream(empty)
  const adapter = await startAdapter(upstream.url)
  const query = week.replaceAll(' ', '%20')
  const states: unknown[] = [
    [query, null, 0, '$top=100000', 0],
    [query, null, 0, '$filter=true', 0],
    [query, null, 99, null, 0],
    [query, null, -1, null, -5],
    [query, null, 0.5, null, 0],
    [query, null, 0, 'x\r\nInjected: 1', 0],
    ['', null, 0, null, 0],
    null,
    'text',
  ]
  const forge = (key: string | Buffer, state: Buffer): string => {
    const signature = createHmac('sha256', key).update(state).digest().subarray(0, 16)
    return Buffer.concat([signature, state]).toString('base64url')
  }
  const bodies = [...states.map((state) => deflateRawSync(JSON.stringify(state))), Buffer.from('no deflate')]
  const keys = ['markbridge next link client-key', 'client-key', '', Buffer.alloc(32)]
  const seen = new Set<string>()
  for (const body of bodies)
    for (const key of keys) {
      const reply = await adapter.request('GET', `${RECORDS}?$skiptoken=${forge(key, body)}`)
      seen.add(`${reply.status} ${/ADP_\w+/.exec(reply.text)?.[0] ?? ''}`)
    }
  expect([[...seen], upstream.seen.map(({ url }) => url)]).toEqual([['400 ADP_QUERY'], []])
})
