import { expect, onTestFinished, test, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createApp, parseConfig } from '../../src/index.ts'
import {
  createNoJournal,
  type Journal,
  type NewBatch,
  openJournal,
  type RecordRef,
} from '../../src/journal/index.ts'
import { batchOf, batchPath, flatRecord, guid, postBatch, readBatchReply } from '../support/batch-request.ts'
import { echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { clientHeaders, onePartner, type Reply, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

/** Two marks of learner 1 and, between them, one of learner 2. */
const batch = batchOf([
  flatRecord(1),
  flatRecord(2),
  flatRecord(1, { SchoolAttendanceCode: guid(800_001), Comment: 'the newer one' }),
])

test('one that its client sends again waits for an older one of its batch that the background looks for', async () => {
  const [held, comments]: [(() => void)[], unknown[]] = [[], []]
  const upstream = await startUpstream((seen, response) => {
    if (seen.method === 'GET') {
      if (seen.index < 3) return replyWith(500)(seen, response)
      held.push(() => void replyWith(200, { value: [] })(seen, response))
      return
    }
    comments.push((JSON.parse(seen.body) as { Qualifier: { Comment?: string } }).Qualifier.Comment)
    if (comments.length === 1) response.socket?.destroy()
    else return (comments.length === 2 ? replyWith(503) : echoRecord)(seen, response)
  })
  const journal = await openJournal({ url: journalFile().url })
  onTestFinished(() => journal.close())
  const client = Promise.withResolvers<undefined>()
  const background = Promise.withResolvers<undefined>()
  // Both have read the batch when the first of them opens records of it.
  const reopen: Journal['reopen'] = async (number, positions, credentials) => {
    if (credentials === undefined) await client.promise
    else {
      client.resolve(undefined)
      await background.promise
    }
    return journal.reopen(number, positions, credentials).finally(() => background.resolve(undefined))
  }
  let ahead = 0
  const adapter = await startAdapter(upstream.url, onePartner({ v3: { readBackAfterMs: [5] } }), {
    openJournal: () => Promise.resolve({ ...journal, reopen }),
    nowMs: () => Date.now() + ahead,
  })
  const both = batchOf(['older', 'newer'].map((Comment) => flatRecord(1, { Comment })))
  const statuses = (reply: Reply): unknown => readBatchReply(reply).map(({ status }) => status)
  expect(statuses(await postBatch(adapter, both))).toEqual([504, 503])
  ahead = 10_000
  const again = postBatch(adapter, both)
  await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 60_000 })
  await adapter.request('GET', '/healthz')
  expect(comments).toEqual(['older', 'newer'])
  held[0]?.()
  expect(statuses(await again)).toEqual([201, 201])
  expect(comments).toEqual(['older', 'newer', 'older', 'newer'])
})

/** An adapter whose journal takes outcomes when the test says so; the reply to the batch, and who was posted so far. */
async function postOn(settle: Journal['settle']) {
  const upstream = await startUpstream((seen, response) =>
    seen.method === 'POST' ? echoRecord(seen, response) : replyWith(200, {})(seen, response),
  )
  const config = parseConfig({ listen: { port: 0 }, upstreams: { v3: { baseUrl: upstream.url } } })
  const openJournal = (): Promise<Journal> => Promise.resolve({ ...createNoJournal(), settle })
  const app = createApp(config, { logLevel: 'silent', openJournal })
  const { url } = await app.listen()
  onTestFinished(() => app.close())
  const headers = { ...clientHeaders, ...batch.headers }
  const reply = fetch(url + batchPath, { method: 'POST', headers, body: batch.body })
  const posted = (): unknown[] =>
    upstream.seen
      .filter(({ method }) => method === 'POST')
      .map(({ body }) => {
        const { Attendee, Qualifier } = JSON.parse(body) as {
          Attendee: { ExternalID: string }
          Qualifier: { Comment?: string }
        }
        return [Number(Attendee.ExternalID.slice(-12)), Qualifier.Comment]
      })
  /** Time for a post that must not be: what leaves now has been there and back when this has. */
  const thereAndBack = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) {
      const passed = await fetch(`${url}/Learner/V3/LearnerSENs`, { headers: clientHeaders })
      await passed.body?.cancel()
    }
  }
  return { reply, posted, thereAndBack }
}

test('a newer record of the same learner and event leaves when the outcome of the older one is durable, and not before', async () => {
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const settle = vi.fn(() => held)
  const { reply, posted, thereAndBack } = await postOn(settle)
  await vi.waitFor(() => expect(settle).toHaveBeenCalled(), 60_000)
  await thereAndBack()
  expect(posted()).toEqual([[1, undefined], [2, undefined]]) // prettier-ignore
  release()
  const { headers, text } = await reply.then(async (got) => ({
    headers: got.headers,
    text: await got.text(),
  }))
  expect(posted()).toEqual([[1, undefined], [2, undefined], [1, 'the newer one']]) // prettier-ignore
  const parts = readBatchReply({ headers: { 'content-type': headers.get('content-type') ?? '' }, text })
  expect(parts.map(({ status }) => status)).toEqual([201, 201, 201])
})

test('it does not leave at all when that outcome cannot be kept', async () => {
  const settle = vi.fn(() => Promise.reject(new AdapterError('ADP_JOURNAL_LOST', 'taken over')))
  const { reply, posted } = await postOn(settle)
  const got = await reply
  await got.body?.cancel()
  expect([got.status, posted()]).toEqual([504, [[1, undefined], [2, undefined]]]) // prettier-ignore
})

test('a record waits for every older one of its learner and event, also when the nearest ends before its own older one', async () => {
  const upstream = await startUpstream(echoRecord)
  const kept = createNoJournal()
  const [older, begun]: [(RecordRef | undefined)[], NewBatch[]] = [[], []]
  const adapter = await startAdapter(upstream.url, onePartner({}), {
    openJournal: () =>
      Promise.resolve({
        ...kept,
        begin: (batch) => {
          begun.push(batch)
          return kept.begin(batch)
        },
        olderOpen: async (records) => {
          const found = await kept.olderOpen(records)
          older.push(...found)
          return found
        },
      }),
  })
  const one = batchOf([flatRecord(1)])
  await postBatch(adapter, one)
  const [sent] = begun
  if (sent === undefined) throw new Error('nothing was begun')
  // Two that somebody else is sending: the second gives up while the first is under way still.
  const [first, second] = [await kept.begin(sent), await kept.begin(sent)]
  const reply = postBatch(adapter, batchOf([flatRecord(1, { Comment: 'the newest' })]))
  await vi.waitFor(() => expect(begun).toHaveLength(2), { timeout: 60_000 })
  await kept.settle(second.batch, [{ position: 0, state: 'refused', answer: undefined, retry: 'resend' }])
  await vi.waitFor(() => expect(older).toEqual([{ batch: first.batch, position: 0 }]), { timeout: 60_000 })
  await adapter.request('GET', '/healthz')
  expect(upstream.seen).toHaveLength(1)
  await kept.settle(first.batch, [{ position: 0, state: 'confirmed', answer: undefined }])
  expect(readBatchReply(await reply).map(({ status }) => status)).toEqual([201])
  expect(older).toEqual([{ batch: first.batch, position: 0 }, undefined])
  expect(upstream.seen).toHaveLength(2)
})
