import { onTestFinished, describe, expect, it, vi } from 'vitest'

import { openInspector } from '../../src/journal/index.ts'
import {
  batchOf,
  flatRecord,
  flatRecords,
  guid,
  outcomesOf,
  postBatch,
  statusesOf,
} from '../support/batch-request.ts'
import {
  echoRecord,
  postsOf,
  replyWith,
  type SeenRequest,
  startUpstream,
} from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { journalFile, type JournalSection } from './support/journal-file.ts'
import { leave, payloadOf } from './support/leave.ts'

const three = batchOf(flatRecords(3))
const reading = { partners: [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [5] } }] }

/** Starts a V3 service that accepts every mark but returns none on reads. */
const startService = () =>
  startUpstream((seen, response) =>
    (seen.method === 'POST' ? echoRecord : replyWith(200, { value: [] }))(seen, response),
  )

/** Resolves with the outcomes of the records of batch 1 once all of them have ended. */
async function ended({ url }: JournalSection) {
  const inspector = await openInspector(url)
  onTestFinished(() => inspector.close())
  const parts = async () => (await inspector.batch(1))?.parts ?? []
  await vi.waitFor(
    async () =>
      expect((await parts()).filter(({ state, retry }) => state === 'open' || retry !== undefined)).toEqual(
        [],
      ),
    60_000,
  )
  return (await parts()).map(({ state, reason, deadLetter, remedy }) => ({
    state,
    reason,
    deadLetter,
    remedy,
  }))
}

const learnersOf = (seen: readonly SeenRequest[]): number[] =>
  postsOf(seen)
    .map(({ body }) => Number(/"Attendee":\{"ExternalID":"[^"]*?(\d+)"/.exec(body)?.[1]))
    .sort()

const confirmed = { state: 'confirmed', reason: undefined, deadLetter: false, remedy: undefined }
const unreadable = {
  reason: 'unreadable',
  deadLetter: true,
  remedy: expect.stringMatching(/cannot read the stored request/) as unknown,
}

describe('recovery of a batch that a dead instance left open', () => {
  it('finishes the batch even if the configured limits are now below the size of the batch', async () => {
    const [upstream, journal] = [await startService(), journalFile({ encrypted: true })]
    await leave(journal, { payload: payloadOf(three), learners: [1, 2, 3] })
    const limits = { maxParts: 2, maxBodyBytes: 100 }
    await startAdapter(upstream.url, { journal, limits, ...reading })
    expect(await ended(journal)).toEqual([confirmed, confirmed, confirmed])
    expect(learnersOf(upstream.seen)).toEqual([1, 2, 3])
  })

  it('makes all records dead letters at once if the request cannot be read', async () => {
    const [upstream, journal] = [await startService(), journalFile({ encrypted: true })]
    await leave(journal, { payload: Buffer.from('of another version'), learners: [1, 2] })
    const adapter = await startAdapter(upstream.url, { journal, ...reading })
    const unknown = { state: 'unknown', ...unreadable }
    expect(await ended(journal)).toEqual([unknown, unknown])
    const reply = await postBatch(adapter, three)
    expect(statusesOf(reply)).toEqual([201, 201, 201])
  })

  it('makes only the unreadable record of the batch a dead letter', async () => {
    const [upstream, journal] = [await startService(), journalFile({ encrypted: true })]
    const odd = { ...three, body: three.body.replace(`"Learner":"${guid(2)}"`, '"Learner":?') }
    await leave(journal, { payload: payloadOf(odd), learners: [1, 2, 3] })
    await startAdapter(upstream.url, { journal, ...reading })
    expect(await ended(journal)).toEqual([confirmed, { state: 'unknown', ...unreadable }, confirmed])
    expect(learnersOf(upstream.seen)).toEqual([1, 3])
  })

  it('ends a record of an unreadable request as not applied, rather than as unknown, if V3 never judged the record', async () => {
    const [upstream, journal] = [await startService(), journalFile({ encrypted: true })]
    const parked = { state: 'parked', answer: '503 []', reason: 'throttled', retry: 1 } as const
    await leave(journal, {
      payload: Buffer.from('of another version'),
      learners: [1, 2],
      settled: [{ position: 0, ...parked }, { position: 1, ...parked, state: 'unknown' }],
    }) // prettier-ignore
    await startAdapter(upstream.url, { journal, ...reading })
    expect(await ended(journal)).toEqual([
      { state: 'notApplied', ...unreadable },
      { state: 'unknown', ...unreadable },
    ])
    expect(upstream.seen).toEqual([])
  })
})

const DAY_MS = 86_400_000
const other = { id: 'other', match: { any: true }, v3: { readBackAfterMs: [5], budgetMs: 300 } }
const known = { id: 'default', match: { pathPrefix: '/default' } }

describe('recovery of an open record whose credentials or partner are missing', () => {
  it.each([
    ['a request of its partner', [known, other], 'noCredentials', /Set journal\.keys/],
    ['the configuration of its partner', [other], 'noPartner', /not in the configuration/],
  ])('blocks newer marks of the same learner and event for at most a day while the record waits for %s', async (_what, partners, reason, remedy) => {
    const [upstream, journal] = [await startService(), journalFile()]
    await leave(journal, { payload: payloadOf(three), learners: [1, 2, 3] })
    let ahead = 0
    const nowMs = () => Date.now() + ahead
    const adapter = await startAdapter(upstream.url, { journal, partners }, { nowMs })
    const batch = batchOf([flatRecord(1)])
    const held = await postBatch(adapter, batch)
    expect(outcomesOf(held)).toEqual([{ status: 503, codes: ['ADP_BUDGET_EXCEEDED'] }])
    ahead = DAY_MS
    const dead = {
      state: 'unknown',
      reason,
      deadLetter: true,
      remedy: expect.stringMatching(remedy) as unknown,
    }
    expect(await ended(journal)).toEqual([dead, dead, dead])
    expect(upstream.seen).toEqual([])
    const taken = await postBatch(adapter, batch)
    expect(outcomesOf(taken)).toEqual([{ status: 201, codes: 'record' }])
  }) // prettier-ignore

  it('ends the record as not applied, rather than as unknown, if V3 never judged the record', async () => {
    const [upstream, journal] = [await startService(), journalFile()]
    const parked = { state: 'parked', answer: '503 []', reason: 'throttled', retry: 1 } as const
    const settled = [{ position: 0, ...parked }]
    await leave(journal, { payload: payloadOf(batchOf([flatRecord(1)])), learners: [1], settled })
    await startAdapter(upstream.url, { journal }, { nowMs: () => Date.now() + DAY_MS })
    expect(await ended(journal)).toMatchObject([
      { state: 'notApplied', reason: 'noCredentials', deadLetter: true },
    ])
  })
})
