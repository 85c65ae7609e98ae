import { describe, expect, it, vi } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import { sampleMark, sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { type BatchText, batchOf, guid, postBatch, statusesOf } from '../support/batch-request.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'
import { startStopping } from './support/stopping-adapter.ts'

type Sandbox = Awaited<ReturnType<typeof startSandbox>>

const RECORDS = 8
const PACE_MS = 250
/** Settings whose read-backs end long before V3 has processed the batch. */
const v3 = { writeMode: 'batch', readBackAfterMs: [20, 40, 60], batchRecordMs: 300 }

/** Builds a batch with one mark for each of the first eight learners. All marks have this comment. */
async function register(sandbox: Sandbox, comment: string): Promise<BatchText> {
  const samples = await sandbox.samples()
  const records = Array.from({ length: RECORDS }, (_, n) => sampleMark(samples, n, { Comment: comment }))
  return batchOf(records, { batch: `batch_${guid(comment.length)}` })
}

/** Returns, for each learner, the comments of the written marks in order. */
async function marksOf(sandbox: Sandbox): Promise<readonly string[][]> {
  const effects = (await sandbox.effects()) as { learner: string; comment: string }[]
  return [...Map.groupBy(effects, ({ learner }) => learner).values()].map((own) =>
    own.map(({ comment }) => comment),
  )
}

const allOf = (...comments: string[]): string[][] => Array.from({ length: RECORDS }, () => comments)
const pace = (resetAfterMs?: number): object => ({ kind: 'pace', ms: PACE_MS, resetAfterMs, path: '$batch', count: 1 }) // prettier-ignore
const created = Array<number>(RECORDS).fill(201)

describe('the adapter in front of a V3 that keeps processing a $batch after its connection is lost', () => {
  it.each([
    ['before any record', 'multipart', 0],
    ['after some records', 'multipart', 3.5 * PACE_MS],
    ['after some records', 'json', 3.5 * PACE_MS],
    ['before the last record', 'multipart', (RECORDS - 0.5) * PACE_MS],
  ])(
    'writes each mark once if the connection is lost %s (format %s)',
    async (_when, batchFormat, resetAfterMs) => {
      const sandbox = await startSandbox()
      const partners = onePartner({ v3: { ...v3, batchFormat } })
      const adapter = await startAdapter(sandbox.url, { journal: journalFile(), ...partners })
      await sandbox.put('faults', pace(resetAfterMs))
      const reply = await postBatch(adapter, await register(sandbox, 'first'), sandboxHeaders)
      expect(statusesOf(reply)).toEqual(created)
      expect(await marksOf(sandbox)).toEqual(allOf('first'))
    },
  )

  it('waits longer than headersMs for the reply to a batch, in proportion to the number of records', async () => {
    const sandbox = await startSandbox()
    const timeouts = { headersMs: 3 * PACE_MS }
    const adapter = await startAdapter(sandbox.url, {
      ...{ journal: journalFile(), v3: { timeouts } },
      ...onePartner({ v3: { ...v3, readBackAfterMs: [] } }),
    })
    await sandbox.put('faults', pace())
    const reply = await postBatch(adapter, await register(sandbox, 'first'), sandboxHeaders)
    expect(statusesOf(reply)).toEqual(created)
  })

  it('posts a lost batch again after the time in which V3 could still apply the first copy', async () => {
    const sandbox = await startSandbox()
    const adapter = await startAdapter(sandbox.url, { journal: journalFile(), ...onePartner({ v3 }) })
    await sandbox.put('faults', { kind: 'reset', apply: false, path: '$batch', count: 1 })
    const reply = await postBatch(adapter, await register(sandbox, 'first'), sandboxHeaders)
    expect(statusesOf(reply)).toEqual(created)
    expect(await marksOf(sandbox)).toEqual(allOf('first'))
  })

  it('posts a correction only after V3 has finished the batch with the older marks', async () => {
    const sandbox = await startSandbox()
    const adapter = await startAdapter(sandbox.url, { journal: journalFile(), ...onePartner({ v3 }) })
    await sandbox.put('faults', pace(1.5 * PACE_MS))
    const first = postBatch(adapter, await register(sandbox, 'first'), sandboxHeaders)
    await vi.waitFor(async () => expect(await sandbox.effects()).not.toEqual([]))
    const second = postBatch(adapter, await register(sandbox, 'corrected'), sandboxHeaders)
    expect(statusesOf(await first)).toEqual(created)
    expect(statusesOf(await second)).toEqual(created)
    expect(await marksOf(sandbox)).toEqual(allOf('first', 'corrected'))
  })

  it('answers 504 when the budget ends, and finishes the read-back in the background', async () => {
    const sandbox = await startSandbox()
    const adapter = await startAdapter(sandbox.url, {
      ...{ journal: journalFile({ encrypted: true }) },
      ...onePartner({ v3: { ...v3, budgetMs: 2.5 * PACE_MS } }),
    })
    await sandbox.put('faults', pace(1.5 * PACE_MS))
    const batch = await register(sandbox, 'first')
    const statuses = statusesOf(await postBatch(adapter, batch, sandboxHeaders))
    expect([...new Set(statuses)].sort()).toEqual([201, 504])
    const correction = statusesOf(await postBatch(adapter, await register(sandbox, 'corrected'), sandboxHeaders)) // prettier-ignore
    // Records that the adapter answered with 201 have both marks. Records that it answered with 503 were not posted.
    expect(new Set(correction)).toEqual(new Set([201, 503]))
    const expected = correction.map((status) => (status === 201 ? ['first', 'corrected'] : ['first']))
    await vi.waitFor(async () => {
      const again = await postBatch(adapter, batch, sandboxHeaders)
      expect([again.status, again.status === 200 ? statusesOf(again) : []]).toEqual([200, created])
    }, 60_000)
    expect(await marksOf(sandbox)).toEqual(expected)
  })

  it.each([['batch'], ['single']])(
    'writes each mark once after kill -9 and a restart (write mode %s)',
    async (writeMode) => {
      const sandbox = await startSandbox()
      const configOf = (mode: string) => ({
        upstreams: { v3: { baseUrl: sandbox.url } },
        journal: { url: journalFile().url, keys: [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }] },
        partners: [{ id: 'acme', match: { any: true }, v3: { ...v3, writeMode: mode, batchRecordMs: 800 } }],
      })
      const config = configOf('batch')
      // Makes V3 so slow that the second process starts before V3 has applied half of the batch.
      await sandbox.put('faults', { ...pace(), ms: 700 })
      const batch = await register(sandbox, 'first')
      const dying = await startStopping(config, { failpoint: { kind: 'afterSend', nth: 1, store: 'sqlite' } })
      await dying.post(batch, sandboxHeaders).catch(() => 'broken off')
      await dying.ended()
      const next = await startStopping({ ...configOf(writeMode), journal: config.journal })
      const second = next.post(await register(sandbox, 'corrected'), sandboxHeaders)
      await vi.waitFor(async () => {
        const { status, text } = await next.post(batch, sandboxHeaders)
        expect([status, text.match(/HTTP\/1\.1 201/g)?.length]).toEqual([200, RECORDS])
      }, 60_000)
      expect((await second).text.match(/HTTP\/1\.1 201/g)?.length).toBe(RECORDS)
      expect(await marksOf(sandbox)).toEqual(allOf('first', 'corrected'))
    },
  )
})
