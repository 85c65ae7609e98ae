import { createHash } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import { type Config, parseConfig, Secret } from '../../src/config/index.ts'
import { fixed, startSandbox } from '../sandbox/start-sandbox.ts'
import {
  batchOf,
  batchPath,
  flatRecord,
  flatRecords,
  guid,
  postBatch,
  postRecords,
  readBatchReply,
} from '../support/batch-request.ts'
import {
  echoRecord,
  holdAnswers,
  replyWith,
  startUpstream,
  type Upstream,
} from '../support/scripted-upstream.ts'
import { type Adapter, adapterConfig, type AdapterSettings, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'
import { leave, payloadOf } from './support/leave.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

const keyOf = (name: string): object => ({
  subscriptionKeySha256: createHash('sha256').update(name).digest('hex'),
})
const showing = (key: string): Record<string, string> => ({ 'Ocp-Apim-Subscription-Key': key })
const idle = { added: [], removed: [], changed: [], needsRestart: [] }

async function start(
  upstream: Pick<Upstream, 'url'>,
  settings: AdapterSettings,
): Promise<Adapter & { change(next: AdapterSettings): ReturnType<Adapter['app']['reload']> }> {
  const adapter = await startAdapter(upstream.url, settings)
  return {
    ...adapter,
    change: (next) =>
      adapter.app.reload(() =>
        adapterConfig(upstream.url, { journal: settings['journal'] ?? { url: 'none' }, ...next }),
      ),
  }
}

async function metricsOf({ url }: Adapter, name: string): Promise<string[]> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return text.split('\n').filter((line) => line.startsWith(`markbridge_${name}`))
}

describe('a reload of the configuration', () => {
  it('applies new partners, keys, limits and quirks to all later requests', async () => {
    const adapter = await start(await startUpstream(), {
      partners: [
        { id: 'a', match: keyOf('one') },
        { id: 'b', match: keyOf('two') },
      ],
    })
    const postAs = async (key: string): Promise<number> =>
      (await postBatch(adapter, batchOf(flatRecords(2)), showing(key))).status
    expect([await postAs('one'), await postAs('two'), await postAs('three')]).toEqual([200, 200, 401])
    const next = [
      {
        id: 'a',
        match: {
          subscriptionKeySha256: ['one', 'three'].map((key) => Object.values(keyOf(key))[0] as string),
        },
        quirks: { dataEnvelope: true },
      },
      { id: 'c', match: keyOf('four') },
    ]
    expect(await adapter.change({ partners: next, listen: { port: 0, drainMs: 7 } })).toEqual({
      added: ['c'],
      removed: ['b'],
      changed: ['a'],
      needsRestart: ['listen.drainMs'],
    })
    expect([await postAs('one'), await postAs('two'), await postAs('three'), await postAs('four')]).toEqual([
      200, 401, 200, 200,
    ])
    const [part] = await postRecords(adapter, [flatRecord(9)], showing('one'))
    expect(part?.json).toHaveProperty('d.Learner', guid(9))
    await adapter.change({ partners: next, limits: { maxBodyBytes: 10 } })
    expect(await postAs('one')).toBe(413)

    expect(adapter.events().filter(({ msg }) => msg === 'config reloaded')).toEqual([
      {
        msg: 'config reloaded',
        revision: 2,
        added: ['c'],
        removed: ['b'],
        changed: ['a'],
        needsRestart: ['listen.drainMs'],
      },
      { msg: 'config reloaded', revision: 3, ...idle },
    ])
    expect(await metricsOf(adapter, 'config_')).toEqual([
      'markbridge_config_reloads_total{result="reloaded"} 2',
      'markbridge_config_reloads_total{result="refused"} 0',
      'markbridge_config_revision 3',
      expect.stringMatching(
        /^markbridge_config_loaded_timestamp_seconds 1\.\d+e\+?9|^markbridge_config_loaded_timestamp_seconds \d{10}/,
      ) as unknown as string,
      'markbridge_config_needs_restart 0',
    ])
  })

  it('fails no request under load, and serves each request with the settings of a single revision', async () => {
    const sandbox = await startSandbox()
    const revisions = ['flat', 'nested', 'flat'].map((layout, index) => ({
      partners: [
        { id: `only-${index}`, match: keyOf(`only-${index}`) },
        {
          id: 'default',
          match: { any: true },
          layout,
          quirks: { mismatch: index === 1 ? 'drop' : 'post' },
          v3: { readBackAfterMs: [10], concurrency: index + 1 },
        },
      ],
      limits: { maxParts: 1_000 + index },
    }))
    const adapter = await start(sandbox, { ...revisions[0], journal: journalFile() })
    const register = await sandboxRegister(sandbox, 5)
    let done = false
    const failures: unknown[] = []
    let count = 0
    const client = async (): Promise<void> => {
      while (!done) {
        const [write, read] = await Promise.all([
          postBatch(adapter, register.batch, register.headers),
          adapter.request(
            'GET',
            `/V2/Attendance/AttendanceRecords?$top=1&$filter=Learner%20eq%20${fixed.learner}`,
            { headers: register.headers },
          ),
        ])
        count += 2
        const parts = write.text.match(/HTTP\/1\.1 201 Created/g)?.length
        if (write.status !== 200 || parts !== 5 || read.status !== 200)
          failures.push([write.status, parts, read.status])
      }
    }
    const clients = [client(), client(), client()]
    for (let round = 1; round <= 20; round += 1) {
      const before = count
      await adapter.change(revisions[round % revisions.length] ?? {})
      await expect.poll(() => count, { interval: 1, timeout: 60_000 }).toBeGreaterThan(before)
    }
    done = true
    await Promise.all(clients)
    expect(failures).toEqual([])
    expect(await metricsOf(adapter, 'config_revision')).toEqual(['markbridge_config_revision 21'])
    // Each mark was written once, because the adapter recognises a resent batch after a reload.
    expect(await register.written()).toEqual(register.learners)
  })

  it('completes a request with the settings that were valid when the request began', async () => {
    const { answer, release } = holdAnswers()
    const upstream = await startUpstream(answer)
    const adapter = await start(upstream, { partners: [{ id: 'a', match: keyOf('one') }] })
    const before = postBatch(adapter, batchOf([flatRecord(1)]), showing('one'))
    await upstream.arrived(1)
    await adapter.change({ partners: [{ id: 'a', match: keyOf('one'), quirks: { dataEnvelope: true } }] })
    const after = postBatch(adapter, batchOf([flatRecord(2)]), showing('one'))
    await upstream.arrived(2)
    expect((await metricsOf(adapter, 'partner_requests')).sort()).toEqual([
      'markbridge_partner_requests{partner="a",revision="current"} 1',
      'markbridge_partner_requests{partner="a",revision="previous"} 1',
    ])
    release()
    const members = [await before, await after].map((reply) => readBatchReply(reply)[0]?.json)
    expect(members[0]).toHaveProperty('Learner')
    expect(members[1]).toHaveProperty('d.Learner')
    await expect.poll(() => metricsOf(adapter, 'partner_requests')).toEqual([])
  })

  it("keeps the rate limit's history and the valid tokens", async () => {
    const upstream = await startUpstream((seen, response) =>
      (seen.url === '/token'
        ? replyWith(200, { access_token: 't', expires_in: 3600, token_type: 'Bearer' })
        : echoRecord)(seen, response),
    )
    const auth = { mode: 'clientCredentials', tokenUrl: `${upstream.url}/token`, clientId: 'c', scope: 's' }
    const settings = (secret: string, callsPerSecond: number): AdapterSettings => ({
      partners: [
        {
          id: 'a',
          match: keyOf('one'),
          v3: { budgetMs: 400, callsPerSecond, auth: { ...auth, clientSecret: new Secret(secret) } },
        },
      ],
    })
    const adapter = await start(upstream, settings('first', 0.1))
    const statusOf = async (n: number): Promise<number | undefined> =>
      (await postRecords(adapter, [flatRecord(n)], showing('one')))[0]?.status
    const askedFor = (): number => upstream.seen.filter(({ url }) => url === '/token').length
    expect(await statusOf(1)).toBe(201)
    await adapter.change(settings('first', 0.125))
    // The limit is one call in eight seconds, and the first call still counts.
    expect(await statusOf(2)).toBe(503)
    await adapter.change(settings('first', 2))
    expect([await statusOf(3), askedFor()]).toEqual([201, 1])
    await adapter.change(settings('second', 2))
    await statusOf(4)
    expect(askedFor()).toBe(2)
  })
})

it('recovery finishes a batch of a missing partner after a reload has added the partner, with the settings of that partner', async () => {
  const upstream = await startUpstream()
  const journal = journalFile({ encrypted: true })
  await leave(journal, { partner: 'later', payload: payloadOf(batchOf(flatRecords(2))), learners: [1, 2] })
  const other = { id: 'other', match: keyOf('one') }
  const adapter = await start(upstream, { partners: [other], journal })
  const saw = (msg: string): unknown => adapter.events().find((event) => event['msg'] === msg)
  await expect.poll(() => saw('recovery waits')).toMatchObject({ missing: 'partner' })
  const later = {
    id: 'later',
    match: keyOf('two'),
    v3: { subscriptionKey: new Secret('newest'), readBackAfterMs: [10] },
  }
  await adapter.change({ partners: [other, later] })
  await expect.poll(() => upstream.seen.length).toBeGreaterThan(0)
  expect(new Set(upstream.seen.map(({ headers }) => headers['ocp-apim-subscription-key']))).toEqual(
    new Set(['newest']),
  )
})

describe('a reload of an invalid configuration', () => {
  const first = { partners: [{ id: 'a', match: keyOf('one') }] }
  const faultsIn = (adapter: Adapter): unknown =>
    adapter
      .events()
      .filter(({ msg }) => msg === 'config refused')
      .map(({ faults }) => faults)

  it('changes nothing, and the adapter logs each fault without a value', async () => {
    const adapter = await start(await startUpstream(), first)
    const load = (): Config =>
      parseConfig({
        upstreams: { v3: { baseUrl: adapter.url } },
        limits: { maxParts: 'hush' },
        partners: [{ id: 'a', match: { any: true }, v3: { subscriptionKey: 'hush' } }],
      })
    await expect(adapter.app.reload(load)).rejects.toMatchObject({ code: 'ADP_CONFIGURATION' })
    expect((await postBatch(adapter, batchOf([flatRecord(1)]), showing('one'))).status).toBe(200)
    expect((await postBatch(adapter, batchOf([flatRecord(1)]), showing('two'))).status).toBe(401)
    expect(faultsIn(adapter)).toEqual([
      [
        {
          code: 'invalid_type',
          target: 'limits.maxParts',
          message: 'Invalid input: expected number, received string',
        },
        {
          code: 'custom',
          target: 'partners[0].v3.subscriptionKey',
          message: 'must be { env: NAME } or { file: path }, never the value itself',
        },
        {
          code: 'conflict',
          target: 'partners[0].match',
          message: expect.stringContaining('every caller of the address') as unknown,
        },
      ],
    ])
    expect(adapter.log.join('')).not.toContain('hush')
    expect(await metricsOf(adapter, 'config_reloads_total')).toContain(
      'markbridge_config_reloads_total{result="refused"} 1',
    )
  })

  it('is rejected if the configuration names another address of V3', async () => {
    const adapter = await start(await startUpstream(), first)
    const elsewhere = adapterConfig('http://127.0.0.1:9', { partners: [{ id: 'b', match: keyOf('two') }] })
    await expect(adapter.app.reload(() => elsewhere)).rejects.toThrow(
      'upstreams.v3.baseUrl: cannot change on a reload',
    )
    expect((await postBatch(adapter, batchOf([flatRecord(1)]), showing('one'))).status).toBe(200)
  })

  it('is rejected if open records would no longer belong to their partner', async () => {
    const { answer, release } = holdAnswers()
    const upstream = await startUpstream(answer)
    const [a, b] = [
      { id: 'a', match: keyOf('one') },
      { id: 'b', match: keyOf('two') },
    ]
    const adapter = await start(upstream, { partners: [a, b], journal: journalFile() })
    const reply = adapter.request('POST', batchPath, {
      ...batchOf(flatRecords(3)),
      headers: { ...batchOf([]).headers, ...showing('one') },
    })
    await upstream.arrived(1)
    const removal = { partners: [b] }
    const renaming = { partners: [b, { ...a, id: 'new' }] }
    const moving = { partners: [b, { ...a, match: keyOf('three') }] }
    for (const next of [removal, renaming, moving])
      await expect(adapter.change(next)).rejects.toThrow('partner a has 3 unsettled record(s)')
    await adapter.change({ partners: [a] })
    release()
    expect((await reply).status).toBe(200)
    expect(await adapter.change(renaming)).toEqual({ ...idle, added: ['b', 'new'], removed: ['a'] })
  })
})
