import { expect, it } from 'vitest'

import { showsAcceptance } from '../../src/proxy/allowed-paths.ts'
import { parseNote, seenName } from '../../src/rollout/evidence/seen-writes.ts'
import { guardStateName } from '../../src/rollout/guards/live-guards.ts'
import { openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath, flatRecord } from '../support/batch-request.ts'
import { incomingMessage } from '../support/incoming-message.ts'
import { exchange } from '../support/raw-client.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { metric, underWay } from '../walls/support/crowd.ts'
import { journalFile } from './support/journal-file.ts'

it.each([
  ['GET', '/V2/Attendance/AttendanceRecords?$filter=x', 200, true],
  ['POST', '/x/V2/Attendance/$batch', 200, true],
  ['PATCH', '/V3/LearnerPersonals(1)', 204, true],
  ['GET', '/V3/LearnerPersonals', 302, false],
  ['GET', '/V3/LearnerPersonals', 304, false],
  ['POST', '/V2/Attendance/$batch', 401, false],
  ['OPTIONS', '/V3/LearnerPersonals', 200, false],
  ['GET', '/V2/Attendance/$metadata', 200, false],
  ['GET', '/V3/%24m%65tadata', 200, false],
  ['GET', '/V2/Attendance/', 200, false],
  ['GET', '/Attendance/V3', 200, false],
  ['GET', '/', 200, false],
] as const)(
  'the adapter regards the credentials of %s %s as accepted if the service answers %i: %s',
  (method, url, status, isAccepted) => {
    expect(showsAcceptance(Object.assign(incomingMessage({ url }), { method }), status)).toBe(isAccepted)
  },
)

it('a request with rejected credentials adds nothing to the evidence, the guards or the comparison', async () => {
  const sandbox = await startSandbox()
  const journal = journalFile()
  const partner = {
    ...{ id: 'acme', match: { any: true }, stage: 'canary', v2: { baseUrl: sandbox.url } },
    canary: { percent: 50, header: 'x-school' },
    check: { v2: 100 },
    compare: { percent: 100 },
  }
  let passedMs = 0
  const nowMs = (): number => Date.now() + passedMs
  const adapter = await startAdapter(sandbox.url, { journal, partners: [partner] }, { nowMs })
  const post = async (credentials: Readonly<Record<string, string>>, school: number): Promise<number> => {
    const { headers, body } = batchOf([flatRecord(school)], { batch: `b${school}` })
    const all = { ...headers, ...credentials, 'x-school': `school ${school}` }
    return (await adapter.request('POST', batchPath, { headers: all, body })).status
  }
  const refused = { ...sandboxHeaders, Authorization: 'Bearer invented' }
  const statuses = await Promise.all(Array.from({ length: 40 }, (_, at) => post(refused, at)))
  expect(new Set(statuses)).toEqual(new Set([401]))
  passedMs = 300_000
  expect(await metric(adapter, 'compare_offered_total')).toBe(0)
  await adapter.app.close()
  const store = await openRolloutStore({ url: journal.url, keys: [] })
  const [evidence, seen, guards] = await Promise.all([
    store.evidence.read('acme'),
    store.readText(seenName('acme')),
    store.readText(guardStateName('acme')),
  ])
  await store.close()
  expect([evidence, parseNote(seen).credentials, guards]).toEqual([[], 'notTried', undefined])
})

it('a redirect does not verify a client, so that redirected clients stay in the quarter of the connections for unverified clients', async () => {
  const held = Promise.withResolvers<undefined>()
  const v2 = await startUpstream(async (seen, response) => {
    if (seen.url.includes('held')) await held.promise
    response.writeHead(302, { Location: '/login' }).end()
  })
  const partners = [{ id: 'acme', match: { any: true }, stage: 'legacy' }]
  const adapter = await startAdapter(v2.url, { v2: { baseUrl: v2.url }, partners })
  // Each client has its own connection, because the pool of the test's requests has fewer connections than the test holds.
  const get = (client: number, path: string): Promise<string> => {
    const lines = `Host: adapter.test\r\nOcp-Apim-Subscription-Key: invented ${client}\r\nConnection: close\r\n`
    return exchange(adapter.port, `GET ${path} HTTP/1.1\r\n${lines}\r\n`)
  }
  const clients = Array.from({ length: 24 }, (_, client) => client)
  for (const client of clients) expect(await get(client, '/V2/Other')).toMatch(/^HTTP\/1\.1 302 /)
  const asking = clients.map((client) => get(client, '/V2/held'))
  await underWay(adapter, clients.length)
  // Unverified clients share a quarter of the 64 connections.
  await v2.arrived(clients.length + 16)
  expect(v2.seen.length).toBe(clients.length + 16)
  held.resolve(undefined)
  await Promise.all(asking)
})
