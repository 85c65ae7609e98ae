import { describe, expect, it, onTestFinished } from 'vitest'

import { createV3Client, type PostOutcome, type V3Client, type V3Writes } from '../../../src/v3/index.ts'
import { systemClock } from '../../../src/clock.ts'
import { type Answer, echoRecord, replyWith, startUpstream } from '../../support/scripted-upstream.ts'

const body = '{"Comment":"caf\u00e9"}'
const credentials = { authorization: 'bearer t', subscriptionKey: 'k' }
const budget: PostOutcome = { kind: 'notApplied', reason: 'budget', retryAfterMs: undefined }
const notConnected: PostOutcome = { kind: 'notApplied', reason: 'notConnected', retryAfterMs: undefined }
const unknown = (reason: Extract<PostOutcome, { kind: 'unknown' }>['reason']): PostOutcome => ({
  kind: 'unknown',
  reason,
})

function client(
  url: string,
  options: { connections?: number; headersMs?: number; bodyMs?: number } = {},
): V3Client {
  const { connections = 4, headersMs = 5_000, bodyMs = 5_000 } = options
  const made = createV3Client({
    baseUrl: new URL(url),
    connections,
    timeouts: { connectMs: 1_000, headersMs, bodyMs },
    nowMs: () => Date.parse('2026-06-10T10:00:00Z'),
    clock: systemClock,
  })
  onTestFinished(() => made.close())
  return made
}

function postWith(writes: V3Writes): Promise<PostOutcome> {
  return writes.post(body)
}

function post(v3: V3Client, budgetMs = 2_500, own = credentials): Promise<PostOutcome> {
  return postWith(v3.openWrites(own, { budgetMs }))
}

const begin =
  (text: string): Answer =>
  (_seen, response) =>
    void response.socket?.write(text)

describe('a post of a single record by the V3 client', () => {
  const failures: [name: string, answer: Answer, outcome: PostOutcome][] = [
    ['a 500 that stalls', begin('HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\n{'), unknown('serverError')],
    ['a 429 with Retry-After that stalls', begin('HTTP/1.1 429 X\r\nRetry-After: 3\r\nContent-Length: 9\r\n\r\n{'), { kind: 'notApplied', reason: 'throttled', retryAfterMs: 3_000 }],
    ['a refusal that stalls', begin('HTTP/1.1 422 X\r\nContent-Length: 9\r\n\r\n{'), { kind: 'refused', error: { status: 422, form: 'unreadable', entries: [] } }],
    ['an early hint and then silence', begin('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'), unknown('timeout')],
    ['an early hint and then a refusal', begin('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 422 X\r\nContent-Length: 0\r\n\r\n'), { kind: 'refused', error: { status: 422, form: 'unreadable', entries: [] } }],
  ] // prettier-ignore
  it('reports the outcome of each kind of failure', async () => {
    // The posts run side by side because most of them wait for a timeout.
    const outcomes = failures.map(async ([name, answer]) => {
      const upstream = await startUpstream(answer)
      return [name, await post(client(upstream.url, { headersMs: 200, bodyMs: 200 }))]
    })
    expect(await Promise.all(outcomes)).toEqual(failures.map(([name, , outcome]) => [name, outcome]))
  })

  it('is reported as not applied if no server listens or a header is invalid', async () => {
    const upstream = await startUpstream()
    const v3 = client(upstream.url)
    expect(await post(v3, 1_000, { ...credentials, subscriptionKey: 'a\nb' })).toEqual(notConnected)
    await upstream.close()
    expect(await post(v3, 1_000)).toEqual(notConnected)
    expect(upstream.seen).toEqual([])
  })

  it('is reported as not applied after the client was closed', async () => {
    const upstream = await startUpstream()
    const v3 = createV3Client({
      baseUrl: new URL(upstream.url),
      connections: 1,
      timeouts: { connectMs: 1_000, headersMs: 1_000, bodyMs: 1_000 },
      nowMs: Date.now,
      clock: systemClock,
    })
    await v3.close()
    expect(await post(v3, 1_000)).toEqual(notConnected)
  })
})

describe('a post of the V3 client whose lease no longer permits it to send', () => {
  it.each<[string, boolean[], string, number]>([
    ['is sent if the permission can be renewed', [true, true], 'accepted', 1],
    ['is not sent if the permission cannot be renewed', [false], 'notApplied', 0],
  ])('%s', async (_what, renewals, kind, posts) => {
    const upstream = await startUpstream()
    let asked = 0
    const permission = {
      maySend: () => (asked += 1) > 2,
      renew: () => Promise.resolve(renewals.shift() === true),
    }
    const writes = client(upstream.url).openWrites(credentials, { budgetMs: 2_500, permission })
    expect(await postWith(writes)).toMatchObject(
      kind === 'accepted' ? { kind } : { kind, reason: 'leaseLost' },
    )
    expect([upstream.seen.length, renewals]).toEqual([posts, []])
  })
})

describe("the end of a batch's budget in the V3 client", () => {
  it('makes the outcome of a sent record unknown, and any other record not applied', async () => {
    const upstream = await startUpstream(() => undefined)
    const writes = client(upstream.url, { connections: 1 }).openWrites(credentials, { budgetMs: 200 })
    const outcomes = await Promise.all([postWith(writes), postWith(writes)])
    expect(outcomes).toEqual([unknown('timeout'), budget])
    expect(await postWith(writes)).toEqual(budget)
    expect(upstream.seen.length).toBe(1)
  })

  it('does not discard a status that arrived before the body', async () => {
    const upstream = await startUpstream(begin('HTTP/1.1 403 X\r\nContent-Length: 9\r\n\r\n{'))
    expect(await post(client(upstream.url), 200)).toEqual({
      kind: 'refused',
      error: { status: 403, form: 'unreadable', entries: [] },
    })
  })

  it('does not close a connection of another batch', async () => {
    const held: (() => void)[] = []
    const upstream = await startUpstream((seen, response) => {
      if (seen.index < 2) held.push(() => void echoRecord(seen, response))
      else return echoRecord(seen, response)
    })
    const v3 = client(upstream.url, { connections: 2 })
    const patient = v3.openWrites(credentials, { budgetMs: 60_000 })
    const first = [postWith(patient), postWith(patient)]
    await upstream.arrived(2)
    const hasty = v3.openWrites(credentials, { budgetMs: 50 })
    expect(await Promise.all(Array.from({ length: 10 }, () => postWith(hasty)))).toEqual(
      Array(10).fill(budget),
    )
    const last = [postWith(patient), postWith(patient)]
    for (const answer of held) answer()
    expect((await Promise.all([...first, ...last])).map(({ kind }) => kind)).toEqual(
      Array(4).fill('accepted'),
    )
    expect([upstream.seen.length, upstream.connections()]).toEqual([4, 2])
  })
})

it('the V3 client reports every call that it sent, with or without a status', async () => {
  const reported: [kind: string, status: number | undefined][] = []
  const upstream = await startUpstream((seen, response) =>
    seen.index === 0
      ? echoRecord(seen, response)
      : seen.index === 1
        ? replyWith(500)(seen, response)
        : undefined,
  )
  const v3 = createV3Client({
    baseUrl: new URL(upstream.url),
    connections: 1,
    timeouts: { connectMs: 1_000, headersMs: 100, bodyMs: 1_000 },
    nowMs: Date.now,
    clock: systemClock,
    onCall: ({ kind, status, durationMs }) => {
      expect(durationMs).toBeGreaterThan(0)
      reported.push([kind, status])
    },
  })
  onTestFinished(() => v3.close())
  for (let count = 0; count < 3; count += 1) await post(v3)
  expect(reported).toEqual([['write', 201], ['write', 500], ['write', undefined]]) // prettier-ignore
})
