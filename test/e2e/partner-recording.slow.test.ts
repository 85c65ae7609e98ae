import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

import { describe, expect, it, vi } from 'vitest'

import { learnRecordings } from '../../src/compare/learn/learned.ts'
import { listRecordings, readRecording } from '../../src/compare/recording/recording-files.ts'
import type { RunDocument } from '../../src/compare/run-document.ts'
import { Secret } from '../../src/config/index.ts'
import { runCommand } from '../cli/run-command.ts'
import { makeFolder as makeParent } from '../journal/open-sqlite.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath, flatRecords, postBatch } from '../support/batch-request.ts'
import { RawClient } from '../support/raw-client.ts'
import { readSamples } from '../support/read-samples.ts'
import { startRawUpstream, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, adapterConfig, startAdapter } from '../support/start-adapter.ts'
import { startFaces } from './support/compared-faces.ts'
import { journalFile } from './support/journal-file.ts'

const KEY = '0e'.repeat(32)
const key = new Secret(KEY)
const marks = '/x/V2/Attendance/AttendanceRecords'
const filter = encodeURIComponent('AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-03T00:00:00Z') // prettier-ignore

const makeFolder = async (): Promise<string> => join(await makeParent(), 'kept')

/** Fates of exchanges by their counts, once so many have one. */
function fatesOf(adapter: Adapter, count: number): Promise<Record<string, number>> {
  return vi.waitFor(
    async () => {
      const samples = [...(await readSamples(adapter))]
      const found = samples.flatMap(([name, value]) => {
        const fate = /^markbridge_record_exchanges_total\{.*fate="(\w+)"/.exec(name)?.[1]
        return fate === undefined ? [] : [[fate, value] as const]
      })
      if (found.reduce((sum, [, value]) => sum + value, 0) < count) throw new Error(JSON.stringify(found))
      return Object.fromEntries(found.filter(([, value]) => value > 0))
    },
    { timeout: 60_000, interval: 20 },
  )
}

/** What a client sends in an hour: writes and reads of each kind. */
async function work(adapter: Adapter, faces: Awaited<ReturnType<typeof startFaces>>) {
  const { mark } = faces
  const json = { ...sandboxHeaders, 'Content-Type': 'application/json' }
  await postBatch(adapter, batchOf([mark(0), mark(1, { MinutesLate: 5, Comment: 'bus' })]), sandboxHeaders)
  const single = await adapter.request('POST', marks, { headers: json, body: JSON.stringify(mark(2)) })
  expect(single.status).toBe(201)
  const { ExternalID } = JSON.parse(single.text) as { ExternalID: string }
  for (const path of [
    `${marks}?$filter=${filter}`,
    `${marks}(${ExternalID})`,
    '/x/V2/LearnerRegistations?expand=Enrolments',
  ])
    expect((await adapter.request('GET', path, { headers: sandboxHeaders })).status).toBe(200)
  return 5
}

const settings = (v2: string, stage: string, record: object | undefined, more: object = {}) => ({
  v2: { baseUrl: v2 },
  partners: [{ id: 'acme', match: { any: true }, clients: 'open', stage, compare: { percent: 0 }, ...(record === undefined ? {} : { record }), ...more }], // prettier-ignore
})

describe('a partner with record', () => {
  it.each([
    { stage: 'legacy', journal: false, served: 'v2' },
    { stage: 'shadow', journal: true, served: 'v2' },
    { stage: 'v3', journal: true, served: 'v3' },
  ])(
    'has its exchanges at $stage (journal: $journal) as $served served them',
    async ({ stage, journal, served }) => {
      const faces = await startFaces()
      const to = await makeFolder()
      const adapter = await startAdapter(faces.v3Url, {
        ...settings(faces.v2Url, stage, { to, key }, { canary: { percent: 100 } }),
        ...(journal ? { journal: journalFile() } : {}),
      })
      const count = await work(adapter, faces)
      expect(await fatesOf(adapter, count)).toEqual({ recorded: 5 })
      const found = await Promise.all(
        (await listRecordings(to)).map((one) => readRecording(one, Buffer.from(KEY, 'hex'))),
      )
      expect(found.map(({ exchange }) => [exchange.kind, exchange.served, exchange.reply.status])).toEqual([
        ['batch', served, 200],
        ['record', served, 201],
        ['readFilter', served, 200],
        ['readKey', served, 200],
        ['registrations', served, 200],
      ])
      const [batch, single] = found.map(({ exchange }) => exchange)
      expect(batch?.request.body.toString()).toContain('"Comment":"bus"')
      expect(batch?.reply.body.toString()).toContain('HTTP/1.1 201 Created')
      expect(JSON.parse(single?.reply.body.toString() ?? '')).toHaveProperty('ExternalID')
      // The same with V2's own rules, offline.
      const args = `compare run --recording ${to} --key env:RECORDING_KEY --json --dir ${to}/../runs`
      const { stdout, stderr, status } = await runCommand(args.split(' '), { RECORDING_KEY: KEY })
      const { compared, verdicts } = JSON.parse(stdout) as RunDocument
      expect([compared, verdicts.differs]).toEqual([served === 'v2' ? 3 : 0, 0])
      expect(stderr).toContain(served === 'v2' ? '3 recorded read(s)' : '5 exchange(s) that V3 served')
      expect(status).toBe(served === 'v2' ? 0 : 3)
      // What the adapter has built shows nothing of V2.
      expect((await learnRecordings(to, Buffer.from(KEY, 'hex'))).size > 0).toBe(served === 'v2')
    },
  )

  it('gives its client the same bytes as one without', async () => {
    const { url } = await startRawUpstream((request, response) => {
      // It may change between the two replies.
      response.sendDate = false
      request.resume().on('end', () => {
        response.writeHead(200, 'Fine', [...['Content-Type', 'multipart/mixed; boundary=b', 'Set-Cookie', 'a=b', 'X-Own', 'ä'], ...['Content-Encoding', 'gzip']]) // prettier-ignore
        response.write(gzipSync('--b\r\n\r\nHTTP/1.1 201 Created\r\n\r\n{}\r\n--b--\r\n'))
        response.end()
      })
    })
    const to = await makeFolder()
    const [plain, recorded] = await Promise.all([
      startAdapter('http://127.0.0.1:9', settings(url, 'legacy', undefined)),
      startAdapter('http://127.0.0.1:9', settings(url, 'legacy', { to, key })),
    ])
    const { headers, body } = batchOf(flatRecords(3))
    const head = Object.entries({ ...headers, ...sandboxHeaders, Host: 'x', 'Content-Encoding': 'gzip' })
    const zipped = gzipSync(body)
    const send = async (adapter: Adapter): Promise<string> => {
      const client = await RawClient.open(adapter.port)
      const lines = [`POST ${batchPath} HTTP/1.1`, ...head.map(([name, value]) => `${name}: ${value}`), 'Connection: close', `Content-Length: ${zipped.length}`, '', ''] // prettier-ignore
      client.send(Buffer.concat([Buffer.from(lines.join('\r\n')), zipped]))
      const chunks: Buffer[] = []
      for await (const chunk of client.socket) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString('latin1')
    }
    expect(await send(recorded)).toBe(await send(plain))
    await fatesOf(recorded, 1)
    const [one = ''] = await listRecordings(to)
    const { exchange } = await readRecording(one, Buffer.from(KEY, 'hex'))
    expect([exchange.request.body.toString(), exchange.reply.reason]).toEqual([body, 'Fine'])
    expect(exchange.reply.body.toString()).toContain('HTTP/1.1 201 Created')
  })

  it('takes no byte of an upload that waits for a connection', async () => {
    const v2 = await startUpstream((_seen, response) => void setTimeout(() => response.end('taken'), 300))
    const to = await makeFolder()
    const adapter = await startAdapter('http://127.0.0.1:9', {
      ...settings(v2.url, 'shadow', { to, key }),
      journal: journalFile(),
      // On a busy machine its journal takes seconds for all of them.
      tuning: { leaseMs: 120_000 },
    })
    // More than the connections to V2.
    const bodies = Array.from({ length: 70 }, (_, n) => batchOf(flatRecords(100 + n)).body)
    const upload = async (body: string): Promise<void> => {
      const client = await RawClient.open(adapter.port)
      const { headers } = batchOf([])
      client.send(`POST ${batchPath} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOcp-Apim-Subscription-Key: k\r\nContent-Type: ${headers['Content-Type']}\r\nContent-Length: ${body.length}\r\n\r\n`) // prettier-ignore
      for (let at = 0; at < body.length; at += 50_000) {
        client.send(body.slice(at, at + 50_000))
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
      let reply = ''
      for await (const chunk of client.socket) reply += String(chunk)
      expect(reply).toContain('200 OK')
    }
    await Promise.all(bodies.map(upload))
    expect(v2.seen.map(({ body }) => body).sort()).toEqual([...bodies].sort())
    await fatesOf(adapter, 70)
    const found = await Promise.all(
      (await listRecordings(to)).map((one) => readRecording(one, Buffer.from(KEY, 'hex'))),
    )
    expect(found.map(({ exchange }) => exchange.request.body.toString()).sort()).toEqual([...bodies].sort())
  })

  it('stops with one log line and a metric where the folder cannot be written, and starts again with a reload', async () => {
    const faces = await startFaces()
    const to = await makeFolder()
    await writeFile(to, 'no folder')
    const own = settings(faces.v2Url, 'legacy', { to, pseudonyms: true })
    const adapter = await startAdapter(faces.v3Url, own)
    const stopped = async () => (await readSamples(adapter)).get('markbridge_record_stopped{partner="acme"}')
    await vi.waitFor(async () => expect(await stopped()).toBe(1), 60_000)
    for (let n = 0; n < 3; n += 1)
      expect((await postBatch(adapter, batchOf([faces.mark(n)]), sandboxHeaders)).status).toBe(200)
    expect(await fatesOf(adapter, 3)).toEqual({ stopped: 3 })
    expect(adapter.events().filter(({ msg }) => msg === 'recording stopped')).toEqual([
      { msg: 'recording stopped', partner: 'acme', code: 'EEXIST' },
    ])
    await rm(to)
    await adapter.app.reload(() => adapterConfig(faces.v3Url, own))
    await postBatch(adapter, batchOf([faces.mark(3)]), sandboxHeaders)
    expect(await fatesOf(adapter, 4)).toEqual({ stopped: 3, recorded: 1 })
    expect(await stopped()).toBe(0)
    // Without the key nothing is copied any longer.
    await adapter.app.reload(() => adapterConfig(faces.v3Url, settings(faces.v2Url, 'legacy', undefined))) // prettier-ignore
    await postBatch(adapter, batchOf([faces.mark(4)]), sandboxHeaders)
    expect(await fatesOf(adapter, 4)).toEqual({ stopped: 3, recorded: 1 })
  })

  it('records no exchange that is not whole, and none that no side has answered', async () => {
    const to = await makeFolder()
    const adapter = await startAdapter(
      'http://127.0.0.1:9',
      settings('http://127.0.0.1:9', 'legacy', { to, key }),
    )
    expect((await postBatch(adapter, batchOf(flatRecords(1)), sandboxHeaders)).status).toBe(503)
    const client = await RawClient.open(adapter.port)
    client.send(
      `POST ${batchPath} HTTP/1.1\r\nHost: x\r\nOcp-Apim-Subscription-Key: k\r\nContent-Length: 1000\r\n\r\nhalf`,
    )
    await new Promise((resolve) => setTimeout(resolve, 50))
    client.socket.destroy()
    expect(await fatesOf(adapter, 2)).toEqual({ incomplete: 2 })
    // The thread opens it.
    await vi.waitFor(async () => expect(await readdir(to)).toEqual([]), 60_000)
  })
})
