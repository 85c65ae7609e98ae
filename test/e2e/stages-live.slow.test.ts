import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { batchPath } from '../support/batch-request.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { exchange } from '../support/raw-client.ts'
import { replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { journalKey, startStopping } from './support/stopping-adapter.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { journalFile } from './support/journal-file.ts'
import { operate, post, stagedSettings, startTwoFaces } from './support/staged-partner.ts'

/** Time in milliseconds within which an instance must notice `back`. */
const BACK_MS = 2_000

/** With this setting, an instance at `shadow` refuses writes if it last read the stages more than 2 s ago. The default is 15 minutes. */
const shortWindow = { resendWindowMs: 2_000 }

/** Waits until an instance is ready. An instance whose stages are too old refuses writes until it has read the stages again. */
const ready = (url: string): Promise<void> =>
  vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200), 60_000)

describe.skipIf(missingPostgres() !== undefined)('the adapter, with instances on one PostgreSQL', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  it('delays a step forward until each instance has finished its writes, and names the instance that it waits for', async () => {
    const faces = await startTwoFaces()
    await fetch(`${faces.v2Url}/_sandbox/faults`, {
      ...{ method: 'PUT', headers: { 'Content-Type': 'application/json' } },
      body: JSON.stringify({ kind: 'latency', ms: 4_000 }),
    })
    const url = await postgres.createDatabase()
    const settings = stagedSettings(faces, url, 'shadow')
    const [one, other] = [
      await startAdapter(faces.v3Url, settings),
      await startAdapter(faces.v3Url, settings),
    ]
    const operator = await operate(url, 'shadow')
    const slow = post(one, faces.batch('slow'))
    await vi.waitFor(async () => {
      const metrics = await one.request('GET', '/metrics')
      expect(metrics.text).toContain('markbridge_stage_writes{partner="acme",side="v2"} 1')
    }, 60_000)
    const driven = operator.forward('canary', 1_500)
    await vi.waitFor(async () => {
      const { partners, acknowledgements } = await operator.store.snapshot()
      const revision = partners.get('acme')?.pending?.revision
      expect(revision).toBeDefined()
      expect(acknowledgements.filter(({ pendingRevision }) => pendingRevision === revision)).toHaveLength(2)
    }, 60_000)
    const held = post(other, faces.batch('held'))
    const result = await driven
    expect(result).toMatchObject({ kind: 'undrained', instances: [{ writes: 1 }] })
    expect((await slow).status).toBe(200)
    expect((await held).status).toBe(200)
    expect((await faces.faces()).get('held')).toBe('V2')
    expect(await operator.forward('canary', 5_000)).toMatchObject({ kind: 'committed' })
    const replies = await Promise.all([post(one, faces.batch('a')), post(other, faces.batch('b'))])
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
    const recorded = await faces.faces()
    expect([recorded.get('a'), recorded.get('b')]).toEqual(['V3', 'V3'])
  })

  it('begins no write on the old side if an instance paused while a step was committed', async () => {
    const faces = await startTwoFaces()
    const url = await postgres.createDatabase()
    const { journal, partners } = stagedSettings(faces, url, 'shadow')
    const keys = [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }]
    const upstreams = { v3: { baseUrl: faces.v3Url } }
    const config = { upstreams, journal: { ...journal, keys }, partners, rollout: shortWindow }
    const pausing = await startStopping(config, { leaseMs: 2_000 })
    const operator = await operate(url, 'shadow', [{ id: 'k1', key: Buffer.from(journalKey, 'hex') }])
    await ready(pausing.url)
    expect(await pausing.post(faces.batch('before'), sandboxHeaders)).toMatchObject({ status: 200 })
    pausing.stop()
    await pausing.stopped()
    // A step forward no longer waits for the instance once its lease has ended.
    expect(await operator.forward('canary', 10_000)).toMatchObject({ kind: 'committed' })
    const post = async (name: string) => {
      const send = (): ReturnType<typeof pausing.post> => pausing.post(faces.batch(name), sandboxHeaders)
      const first = await send()
      if (first.status !== 503) return first
      // The lease ended after the adapter had chosen V2 or V3, and before it sent the first byte. Nothing was sent, so the client resends.
      expect(first.text).toMatch(/ADP_(?:STAGE_UNKNOWN|JOURNAL_UNAVAILABLE)/)
      await ready(pausing.url)
      return send()
    }
    const replies = Array.from({ length: 8 }, (_, n) => post(`after ${n}`))
    pausing.goOn()
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(Array(8).fill(200))
    const recorded = await faces.faces()
    expect([...recorded.values()]).toEqual(['V2', ...(Array(8).fill('V3') as string[])])
    pausing.stop()
    await pausing.stopped()
    await operator.back('shadow')
    const back = post('back')
    pausing.goOn()
    expect((await back).status).toBe(200)
    // A pause that is shorter than the lease may end before the next read of the stages, so `back` may take two seconds.
    await vi.waitFor(async () => {
      await pausing.post(faces.batch('back'), sandboxHeaders)
      expect((await faces.faces()).get('back')).toBe('V2')
    }, BACK_MS)
  })

  it.each(['shadow', 'v3'] as const)(
    'refuses a write that was arriving at stage %s if its instance paused while a step was committed',
    async (stage) => {
      const faces = await startTwoFaces()
      const url = await postgres.createDatabase()
      const { journal, partners } = stagedSettings(faces, url, stage)
      const keys = [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }]
      const upstreams = { v3: { baseUrl: faces.v3Url } }
      const config = { upstreams, journal: { ...journal, keys }, partners, rollout: shortWindow }
      const pausing = await startStopping(config, { leaseMs: 2_000 })
      const operator = await operate(url, stage, [{ id: 'k1', key: Buffer.from(journalKey, 'hex') }])
      await ready(pausing.url)
      const { headers, body } = faces.batch('arriving')
      const length = { 'Content-Length': String(Buffer.byteLength(body)) }
      const upload = request(`${pausing.url}${batchPath}`, {
        method: 'POST',
        headers: { ...headers, ...sandboxHeaders, ...length },
      })
      const reply = once(upload, 'response') as Promise<[IncomingMessage]>
      upload.write(body.slice(0, 100))
      const side = stage === 'v3' ? 'v3' : 'v2'
      await vi.waitFor(async () => {
        const metrics = await (await fetch(`${pausing.url}/metrics`)).text()
        expect(metrics).toContain(`markbridge_stage_writes{partner="acme",side="${side}"} 1`)
      }, 60_000)
      pausing.stop()
      await pausing.stopped()
      if (stage === 'v3') await operator.back('shadow')
      else expect(await operator.forward('canary', 10_000)).toMatchObject({ kind: 'committed' })
      // Waits until the lease of the paused instance has ended. From then on, the instance must not send its write.
      await vi.waitFor(
        async () => expect((await operator.store.snapshot()).liveInstances).toEqual([]),
        60_000,
      )
      pausing.goOn()
      upload.end(body.slice(100))
      const [answer] = await reply
      expect([answer.statusCode, await text(answer)]).toEqual([
        503,
        expect.stringContaining('ADP_STAGE_UNKNOWN'),
      ])
      expect([...(await faces.faces()).keys()]).toEqual([])
      expect(await pausing.post(faces.batch('resent'), sandboxHeaders)).toMatchObject({ status: 200 })
      expect([...(await faces.faces()).values()]).toEqual([stage === 'v3' ? 'V2' : 'V3'])
    },
  )

  it('while the database is down, still serves stage legacy, but refuses writes at stage v3', async () => {
    const { server } = postgres
    if (server === undefined) return
    const faces = await startTwoFaces()
    const url = await postgres.createDatabase()
    const stateDir = join(journalFile().url.slice('sqlite:'.length), '..')
    const legacySettings = stagedSettings(faces, url, 'legacy', { journal: { stateDir } })
    const short = { leaseMs: 1_000 }
    const legacy = await startAdapter(faces.v3Url, legacySettings, short)
    const v3Settings = stagedSettings(faces, await postgres.createDatabase(), 'v3')
    const v3 = await startAdapter(faces.v3Url, v3Settings, short)
    await vi.waitFor(
      () => expect(post(v3, faces.batch('before'))).resolves.toMatchObject({ status: 200 }),
      60_000,
    )
    await server.stop()
    try {
      await vi.waitFor(
        async () => expect((await post(v3, faces.batch('x'))).text).toContain('ADP_STAGE_UNKNOWN'),
        {
          timeout: 60_000,
        },
      )
      expect(await post(legacy, faces.batch('legacy'))).toMatchObject({ status: 200 })
      expect((await faces.faces()).get('legacy')).toBe('V2')
      await legacy.app.close()
      const again = await startAdapter(faces.v3Url, legacySettings, short)
      expect(await post(again, faces.batch('again'))).toMatchObject({ status: 200 })
      expect((await again.request('GET', '/readyz')).status).toBe(200)
      const without = await startAdapter(faces.v3Url, stagedSettings(faces, url, 'legacy'))
      expect((await without.request('GET', '/readyz')).text).toBe('{"status":"stages unknown"}')
      expect((await post(without, faces.batch('without'))).text).toContain('ADP_STAGE_UNKNOWN')
    } finally {
      await server.start()
    }
  }, 120_000)

  it('while the database is down, relays a batch to V2 byte for byte through an instance with journal.url: none', async () => {
    const { server } = postgres
    if (server === undefined) return
    const faces = await startTwoFaces()
    const v2 = await startUpstream(replyWith(200, 'é, and no batch reply\r\n', { 'X-Of-V2': 'kept' }))
    const sides = { v2Url: v2.url }
    const url = await postgres.createDatabase()
    const running = await startAdapter(faces.v3Url, stagedSettings(sides, url, 'legacy'), { leaseMs: 1_000 })
    const operator = await operate(url, 'legacy')
    for (const stage of ['shadow', 'canary'] as const)
      expect(await operator.forward(stage)).toMatchObject({ kind: 'committed' })
    expect(await post(running, faces.batch('before'))).toMatchObject({ status: 200 })
    await server.stop()
    try {
      await vi.waitFor(async () => {
        const { status, text } = await post(running, faces.batch('refused'))
        expect([status, text]).toEqual([503, expect.stringContaining('ADP_STAGE_UNKNOWN')])
      }, 60_000)
      expect([[...(await faces.faces()).values()], v2.seen]).toEqual([['V3'], []])
      const alone = await startAdapter(faces.v3Url, stagedSettings(sides, 'none', 'legacy'))
      expect((await alone.request('GET', '/readyz')).status).toBe(200)
      const { headers, body } = faces.batch('without a journal')
      const fields = { ...headers, ...sandboxHeaders, Connection: 'close', 'Content-Length': body.length }
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
      const request = `POST ${batchPath} HTTP/1.1\r\nHost: v2.example\r\n${lines.join('')}\r\n${body}`
      const replies = [await exchange(v2.port, request), await exchange(alone.port, request)]
      const [direct, relayed] = replies.map((reply) => reply.replace(/^Date: .*\r\n/m, ''))
      expect(direct).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(relayed).toBe(direct)
      expect(v2.seen.map(({ url: path, body: seen }) => [path, seen])).toEqual([
        [batchPath, body],
        [batchPath, body],
      ])
    } finally {
      await server.start()
    }
  }, 120_000)
})
