import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { openJournal } from '../../src/journal/index.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchPath, type BatchText } from '../support/batch-request.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import type { Adapter, Reply } from '../support/start-adapter.ts'
import { startRelayed, startTwoFaces, type TwoFaces } from './support/two-faces.ts'

/** Returns the status, fields and body of a reply of V2. The fields include Date, which usually differs if V2 answered again. */
const seen = ({ status, headers, text }: Reply): unknown => {
  // Leaves out the fields of the connection between client and adapter.
  const fields = { ...headers, connection: undefined, 'keep-alive': undefined }
  return { status, fields, text }
}
const lostOnV2 = { kind: 'reset', apply: true, face: 'V2', method: 'POST', count: 1 }
const codeOf = ({ text }: Reply): unknown => (JSON.parse(text) as { error: { code: string } }).error.code
const metric = async (adapter: Adapter, line: RegExp): Promise<boolean> =>
  line.test((await adapter.request('GET', '/metrics')).text)

const postAs = (adapter: Adapter, { headers, body }: BatchText, token: string): Promise<Reply> =>
  adapter.request('POST', batchPath, {
    headers: { ...headers, ...sandboxHeaders, Authorization: `Bearer ${token}` },
    body,
  })

describe('a resend of a batch that V2 served at stage canary', () => {
  const served = { stage: 'canary', known: 'keys' } as const
  const start = async (choices: object = {}): Promise<TwoFaces> => {
    const faces = await startTwoFaces(choices)
    Object.assign(faces.served, served)
    return faces
  }

  it("gets V2's whole reply byte for byte on every instance, and V2 gets the batch once", async () => {
    const faces = await start()
    const [adapter, other] = [await faces.start(), await faces.start()]
    const batch = faces.batch([1, 2], 'one')
    const first = await faces.post(adapter, batch)
    expect(first.status).toBe(200)
    for (const instance of [adapter, other, adapter])
      expect(seen(await faces.post(instance, batch))).toEqual(seen(first))
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 2 one'])
    await adapter.app.close()
    expect(seen(await faces.post(await faces.start(), batch))).toEqual(seen(first))
    expect(await faces.effects()).toHaveLength(2)
    const journal = await openJournal({ url: faces.journal.url })
    expect((await journal.balances())[0]?.received).toBe(2)
    await journal.close()
  })

  it('counts as a new batch if the client has used the ids for other bytes since it got the first reply', async () => {
    const { faces, adapter } = await startRelayed(served)
    const [one, two] = [faces.batch([1], 'one', 'constant'), faces.batch([1], 'two', 'constant')]
    for (const batch of [one, two, one, one, two]) expect((await faces.post(adapter, batch)).status).toBe(200)
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 two', 'V2 1 one', 'V2 1 two'])
  })

  it('counts as a resend if the client disconnected before the first reply, even if it has used the ids for other bytes since', async () => {
    const { faces, adapter } = await startRelayed(served)
    const [one, two] = [faces.batch([1], 'one', 'constant'), faces.batch([1], 'two', 'constant')]
    await faces.setFaults({ kind: 'latency', ms: 1_500, face: 'V2', method: 'POST', count: 1 })
    const gone = fetch(`${adapter.url}${batchPath}`, {
      method: 'POST',
      headers: { ...one.headers, ...sandboxHeaders },
      body: one.body,
      signal: AbortSignal.timeout(750),
    })
    await expect(gone).rejects.toThrow()
    await faces.waitForEffects(1)
    expect((await faces.post(adapter, two)).status).toBe(200)
    expect((await faces.post(adapter, one)).status).toBe(200)
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 two'])
  })

  it('is sent to V2 again if the reply was lost, and the journal then stores the complete reply', async () => {
    const { faces, adapter, batch } = await startRelayed(served)
    await faces.setFaults(lostOnV2)
    const lost = await faces.post(adapter, batch)
    expect([lost.status, codeOf(lost)]).toEqual([504, 'ADP_V2_OUTCOME_UNKNOWN'])
    const second = await faces.post(adapter, batch)
    expect(second.status).toBe(200)
    expect(seen(await faces.post(adapter, batch))).toEqual(seen(second))
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 one'])
  })

  it('gets 504, and is not sent, if the first copy is still in progress when the budget of the resend ends', async () => {
    const { faces, adapter, batch } = await startRelayed(served, { v3: { budgetMs: 300 } })
    await faces.setFaults({ kind: 'latency', ms: 2_000, face: 'V2', method: 'POST', count: 1 })
    const first = faces.post(adapter, batch)
    const journal = await openJournal({ url: faces.journal.url })
    await vi.waitFor(async () => expect((await journal.balances())[0]?.open).toBeGreaterThan(0), 60_000)
    const again = await faces.post(adapter, batch)
    expect([again.status, codeOf(again)]).toEqual([504, 'ADP_V2_OUTCOME_UNKNOWN'])
    expect(again.text).toContain('This copy was not sent')
    await first
    expect(seen(await faces.post(adapter, batch))).toEqual(seen(await first))
    expect(await faces.effects()).toEqual(['V2 1 one'])
    await journal.close()
  })

  it("is sent to V2 if the journal cannot return V2's reply", async () => {
    const faces = await start()
    const kept = await openJournal({ url: faces.journal.url })
    const away = new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'away')
    const adapter = await faces.start({
      openJournal: () => Promise.resolve({ ...kept, load: () => Promise.reject(away) }),
    })
    const batch = faces.batch([1], 'one')
    for (let time = 0; time < 2; time += 1) expect((await faces.post(adapter, batch)).status).toBe(200)
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 one'])
  })

  it('is sent only once more if the first reply is lost while several copies of the batch wait for it', async () => {
    const { faces, adapter, batch } = await startRelayed(served)
    await faces.setFaults([{ ...lostOnV2, kind: 'latency', ms: 300, apply: undefined }, lostOnV2])
    const replies = await Promise.all([1, 2, 3].map(() => faces.post(adapter, batch)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 504])
    expect(await faces.effects()).toEqual(['V2 1 one', 'V2 1 one'])
  })

  it('gets the stored reply for another token only if V2 shows one of the marks to that token', async () => {
    const { faces, adapter, batch } = await startRelayed(served)
    const first = await faces.post(adapter, batch)
    const refused = await postAs(adapter, batch, 'wrong')
    expect([refused.status, refused.text]).toEqual([401, expect.not.stringContaining('ADP_')])
    expect(seen(await postAs(adapter, batch, 'second'))).toEqual(seen(first))
    expect(await faces.effects()).toEqual(['V2 1 one'])
    expect(seen(await faces.post(adapter, batch))).toEqual(seen(first))
  })

  it('is not sent while V2 does not respond to the check whether the client may have the stored reply', async () => {
    const faces = await start({ v3: { readBackAfterMs: [5, 10] } })
    const [adapter, other] = [await faces.start(), await faces.start()]
    const batch = faces.batch([1], 'one')
    const first = await faces.post(adapter, batch)
    const reads = { face: 'V2', method: 'GET' }
    for (const fault of [{ kind: 'reset' }, { kind: 'status', status: 503 }]) {
      await faces.setFaults({ ...reads, ...fault })
      const again = await faces.post(other, batch)
      expect([again.status, codeOf(again)]).toEqual([504, 'ADP_V2_OUTCOME_UNKNOWN'])
      expect(again.text).toContain('This copy was not sent')
    }
    await faces.setFaults({ ...reads, kind: 'reset', count: 1 })
    expect(seen(await faces.post(other, batch))).toEqual(seen(first))
    expect(await faces.effects()).toEqual(['V2 1 one'])
  })

  it('is logged as replayed, with the outcomes of its records', async () => {
    const { faces, adapter } = await startRelayed(served)
    const batch = faces.batch([1, 2], 'one')
    await faces.post(adapter, batch)
    await faces.post(adapter, batch)
    const replays = adapter.events().filter(({ replayed }) => replayed === true)
    expect(replays).toMatchObject([{ partner: 'acme', records: 2, accepted: 2 }])
    expect(await metric(adapter, /stage_unrecorded_total\{[^}]*\} [1-9]/)).toBe(false)
  })
})

it('the adapter sends every copy of a batch at stage legacy to V2', async () => {
  const faces = await startTwoFaces()
  const adapter = await faces.start()
  const batch = faces.batch([1], 'one')
  Object.assign(faces.served, { stage: 'shadow', known: 'identity' })
  await faces.post(adapter, batch)
  for (const known of ['nothing', 'identity', 'keys'] as const) {
    Object.assign(faces.served, { stage: 'legacy', known })
    expect((await faces.post(adapter, batch)).status).toBe(200)
  }
  expect(await faces.effects()).toHaveLength(4)
})

/** Starts a V2 that gives these replies to writes, one after another, and counts the writes. */
async function startV2(replies: readonly V2Reply[]) {
  let writes = 0
  const upstream = await startUpstream(({ method }, response) => {
    const { status = 200, type = 'multipart/mixed; boundary=b', text } = replies[writes] ?? { text: '' }
    if (method === 'POST') writes += 1
    response.writeHead(status, { 'Content-Type': type }).end(text)
  })
  return { url: upstream.url, writes: () => writes }
}

interface V2Reply {
  readonly status?: number
  readonly type?: string
  readonly text: string
}

const partsOf = (...statuses: readonly number[]): V2Reply => ({
  text: statuses
    .map((status) => `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${status} X\r\n\r\n{}\r\n`)
    .concat('--b--\r\n')
    .join(''),
})
const whole = partsOf(201, 201)

describe.each(['identity', 'keys'] as const)(
  'a resend of a batch at stage shadow that the adapter recognises by its %s',
  (known) => {
    /** Sends three copies of a batch for each name. Returns the replies to the client and the number of copies that reached V2. */
    const sendThrice = async (names: readonly string[], replies: readonly V2Reply[]): Promise<unknown> => {
      const v2 = await startV2(replies)
      const faces = await startTwoFaces({ v2: { baseUrl: v2.url } })
      Object.assign(faces.served, { stage: 'shadow', known })
      const adapter = await faces.start()
      const given: unknown[] = []
      for (const name of names) {
        const before = v2.writes()
        const batch = faces.batch([1, 2], name, String(given.length))
        const three: unknown[] = []
        for (let time = 0; time < 3; time += 1) {
          const { status, text } = await faces.post(adapter, batch)
          three.push([status, text])
        }
        given.push([name, three, v2.writes() - before])
      }
      return given
    }

    it('is sent to V2 again if the first reply was not final', async () => {
      const rows: readonly (readonly [name: string, reply: V2Reply])[] = [
        ['a part with 503', partsOf(201, 503)],
        ['a part with 504', partsOf(201, 504)],
        ['a part with 429', partsOf(201, 429)],
        ['parts with 401', partsOf(401, 401)],
        ['a 500 for the whole batch', { ...whole, status: 500 }],
        ['a 400 for the whole batch', { ...whole, status: 400 }],
        ['a redirect', { ...whole, status: 307 }],
        ['no parts although its type is multipart', { text: '' }],
        ['parts that are cut off', { text: whole.text.replace('--b--', '') }],
        ['fewer parts than records', partsOf(201)],
      ]
      const names = rows.map(([name]) => name)
      const replies = rows.flatMap(([, reply]) => [reply, whole])
      const last = [200, whole.text]
      expect(await sendThrice(names, replies)).toEqual(
        rows.map(([name, { status = 200, text }]) => [name, [[status, text], last, last], 2]),
      )
    })

    it('is answered from the journal if the first reply was final', async () => {
      const rows: readonly (readonly [name: string, reply: V2Reply])[] = [
        ['parts of which one is a 400', partsOf(201, 400)],
        ['one answer for all records', { text: '{"value":"done"}', type: 'application/json' }],
        ['one answer for all records without a body', { text: '', type: 'text/plain' }],
      ]
      const names = rows.map(([name]) => name)
      const replies = rows.map(([, reply]) => reply)
      expect(await sendThrice(names, replies)).toEqual(
        rows.map(([name, { text }]) => [name, Array(3).fill([200, text]), 1]),
      )
    })
  },
)
