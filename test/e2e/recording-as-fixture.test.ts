import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { describe, expect, it, onTestFinished } from 'vitest'

import { type App, createApp } from '../../src/app.ts'
import {
  createPseudonyms,
  createRecordingTarget,
  openRecordingStore,
  readRecording,
  type RecordedExchange,
} from '../../src/compare/recording/index.ts'
import { fieldOf } from '../../src/compare/wire-exchange.ts'
import { parseConfig } from '../../src/config/index.ts'
import { createSlicing } from '../../src/http/slices.ts'
import { decodeBatchReply } from '../../src/v2/index.ts'
import { recordingPartner } from '../compare/recording/recording-partner.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { startFaces } from './support/compared-faces.ts'
import { expectPosts } from './support/expect-exchange.ts'
import { type Fixture, loadFixture, loadFixtures } from './support/fixture.ts'
import { exchange } from './support/raw-exchange.ts'
import { headerOf } from './support/raw-message.ts'
import { startUpstream } from './support/scripted-upstream.ts'

const plain = (await loadFixtures()).filter(
  ({ reject, partner, limits, request, posts, name }) =>
    // Not recorded with pseudonyms: what is faulty in their charset would not be.
    !['charset-single-byte', 'charset-wrong'].includes(name) &&
    reject === undefined &&
    posts.length > 0 &&
    Object.keys({ ...partner, ...limits }).length === 0 &&
    headerOf(request, 'content-encoding') === undefined,
)

/** The fixture as a client would have sent it through a recorder with pseudonyms; the folder of the recording. */
async function record({ request, response, name }: Fixture): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'recording-as-fixture-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const sent = ['Content-Type', 'Accept'].flatMap((own) => {
    const value = headerOf(request, own.toLowerCase())
    return value === undefined ? [] : [own, value]
  })
  const own: RecordedExchange = {
    ...{ kind: 'batch', served: 'v2', method: 'POST', target: '/V2/Attendance/$batch' },
    request: { fields: sent, body: request.body },
    reply: {
      ...{ status: 200, reason: 'OK' },
      fields: (response?.headers ?? []).flat(),
      body: response?.body ?? Buffer.alloc(0),
    },
    ...{ receivedMs: Date.UTC(2026, 8, 7, 8, 40), durationMs: 12 },
  }
  const target = createRecordingTarget({
    open: () =>
      openRecordingStore({ folder, key: undefined, maxBytes: 1e9, maxAgeMs: 1e12, nowMs: Date.now }),
    pseudonyms: createPseudonyms(Buffer.from(name.padEnd(32).slice(0, 32))),
    onStopped: () => undefined,
  })
  expect(await target.keep(own, recordingPartner(), createSlicing().open())).toBe('recorded')
  const [one = ''] = await readdir(folder)
  return join(folder, one)
}

async function startAdapter(
  url: string,
  partner: object,
): Promise<{ readonly app: App; readonly port: number }> {
  const { v3 = {} } = partner as { v3?: object }
  const app = createApp(
    parseConfig({
      listen: { port: 0 },
      journal: { url: 'none' },
      upstreams: { v3: { baseUrl: url } },
      partners: [{ id: 'partner', match: { any: true }, ...partner, v3: { ...v3, readBackAfterMs: [] } }],
    }),
    { logLevel: 'silent' },
  )
  return { app, port: (await app.listen()).port }
}

describe('a recording with pseudonyms, copied as a test case', () => {
  it.each(plain)('makes the adapter post what it says: $name', async (fixture) => {
    const folder = await record(fixture)
    const copied = await loadFixture(pathToFileURL(`${folder}/`), fixture.name)
    // Records that no rule refuses, as the fixture has them.
    expect([copied.posts.length, copied.response]).toEqual([fixture.posts.length, undefined])
    const upstream = await startUpstream(copied.posts, [])
    const { app, port } = await startAdapter(upstream.url, copied.partner)
    try {
      const reply = await exchange(port, copied.bytes, [], () => undefined)
      expect(reply.startLine).toBe('HTTP/1.1 200 OK')
      expectPosts(copied, upstream)
    } finally {
      await app.close()
      await upstream.close()
    }
  })
})

it('and the answers of V3 that it assumes lead to the reply that V2 gave', async () => {
  const { v2Url } = await startFaces()
  const register = plain.find(({ name }) => name === 'class-register')
  if (register === undefined) throw new Error('fixtures/class-register is missing')
  const headers = { ...sandboxHeaders, 'Content-Type': headerOf(register.request, 'content-type') ?? '' }
  const answer = await fetch(`${v2Url}/V2/Attendance/$batch`, { method: 'POST', headers, body: register.request.body }) // prettier-ignore
  const type = answer.headers.get('content-type') ?? ''
  const folder = await record({
    ...register,
    response: {
      startLine: 'HTTP/1.1 200 OK',
      headers: [['Content-Type', type]],
      body: Buffer.from(await answer.arrayBuffer()),
    },
  })
  const copied = await loadFixture(pathToFileURL(`${folder}/`), 'recorded')
  expect([copied.answers.length, copied.answers.filter((own) => own?.status === 400).length]).toEqual([30, 3])
  const { exchange: recorded } = await readRecording(folder, undefined)
  const upstream = await startUpstream(copied.posts, copied.answers)
  const { app, port } = await startAdapter(upstream.url, copied.partner)
  try {
    const reply = await exchange(port, copied.bytes, [], () => undefined)
    expectPosts(copied, upstream)
    expect(partsOf(reply.body, headerOf(reply, 'content-type'))).toEqual(
      partsOf(recorded.reply.body, fieldOf(recorded.reply, 'content-type')),
    )
  } finally {
    await app.close()
    await upstream.close()
  }
})

/** Of each part what follows from the answer of V3: no address, and no words of a service. */
function partsOf(body: Buffer, type: string | undefined): unknown {
  return decodeBatchReply(body, type).parts.map(({ contentId, status, body: text }) => {
    const json = JSON.parse(text) as object
    const errors = Array.isArray(json)
      ? (json as { ErrorCode: string }[]).map(({ ErrorCode }) => ErrorCode)
      : undefined
    return [contentId, status, errors ?? { ...json, '@odata.context': '' }]
  })
}
