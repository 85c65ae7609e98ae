import { setTimeout } from 'node:timers/promises'

import { expect, onTestFinished, test, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type Journal, openJournal } from '../../src/journal/index.ts'
import { batchOf, flatRecords, guid, postBatch, readBatchReply } from '../support/batch-request.ts'
import { type Answer, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, type Reply, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const batch = batchOf(flatRecords(2))
const statuses = (reply: Reply): unknown => readBatchReply(reply).map(({ status }) => status)

/** The adapter on a journal of which some members are replaced. */
async function startWith(answer: Answer, own: (journal: Journal) => Partial<Journal>, v3: object = {}) {
  const upstream = await startUpstream(answer)
  const journal = await openJournal({ url: journalFile().url })
  onTestFinished(() => journal.close())
  const open = (): Promise<Journal> => Promise.resolve({ ...journal, ...own(journal) })
  const adapter = await startAdapter(upstream.url, onePartner({ v3 }), { openJournal: open })
  return { upstream, adapter, journal }
}

/** Leaves the first record to the background, as a run does for which no client waits. */
const parkFirst =
  (journal: Journal): Journal['settle'] =>
  (number, outcomes, lease) =>
    journal.settle(
      number,
      outcomes.map((outcome) =>
        outcome.position === 0 && outcome.retry === 'resend'
          ? { ...outcome, state: 'parked', retry: 1 }
          : outcome,
      ),
      lease,
    )

test('product 3: a record that the background takes while its batch is sent again is not told 503', async () => {
  const client = Promise.withResolvers<undefined>()
  const background = Promise.withResolvers<undefined>()
  let isOpen = false
  const { upstream, adapter } = await startWith(
    (seen, response) => (isOpen ? echoRecord : replyWith(503))(seen, response),
    (journal) => ({
      settle: parkFirst(journal),
      // Both have read the batch when the background opens its record.
      reopen: async (number, positions, credentials) => {
        if (credentials === undefined) await client.promise
        else {
          client.resolve(undefined)
          await background.promise
        }
        return journal.reopen(number, positions, credentials).finally(() => background.resolve(undefined))
      },
    }),
  )
  expect(statuses(await postBatch(adapter, batch))).toEqual([503, 503])
  isOpen = true
  expect(statuses(await postBatch(adapter, batch))).toEqual([201, 201])
  expect(upstream.seen.filter(({ method }) => method === 'POST').length).toBe(4)
})

test('product 3: nor one that waits for the background while another of its batch is under way', async () => {
  const held: (() => void)[] = []
  let posts = 0
  const { adapter, journal } = await startWith(
    (seen, response) => {
      posts += 1
      if (seen.body.includes(guid(1)) && posts < 3) return replyWith(503)(seen, response)
      if (seen.body.includes(guid(1))) return echoRecord(seen, response)
      held.push(() => void echoRecord(seen, response))
    },
    (whole) => ({ settle: parkFirst(whole), due: () => Promise.resolve([]) }),
  )
  const first = postBatch(adapter, batch)
  await vi.waitFor(
    async () => expect(await journal.balances()).toMatchObject([{ parked: 1, open: 1 }]),
    60_000,
  )
  const joined = postBatch(adapter, batch)
  await vi.waitFor(() => expect(held).toHaveLength(1), 60_000)
  await adapter.request('GET', '/healthz')
  held[0]?.()
  expect(statuses(await first)).toEqual([503, 201])
  expect(statuses(await joined)).toEqual([201, 201])
})

test('product 3: a batch that is still being sent when the time of its second request is over is told 504', async () => {
  const { adapter } = await startWith(
    echoRecord,
    (journal) => ({
      // Another sender takes longer than any budget.
      load: async (number) => {
        const stored = await journal.load(number)
        return stored && { ...stored, records: stored.records.map((one) => ({ ...one, state: 'open' })) }
      },
      stillOpen: (records) => Promise.resolve(records),
    }),
    { budgetMs: 1_000 },
  )
  expect(statuses(await postBatch(adapter, batch))).toEqual([201, 201])
  const joined = await postBatch(adapter, batch)
  expect([joined.status, JSON.parse(joined.text)]).toMatchObject([
    504,
    { error: { code: 'ADP_OUTCOME_UNKNOWN' } },
  ])
})

test.each(['load', 'reopen'] as const)(
  'product 3: a batch that came before is told 504 while the journal fails to %s it',
  async (failing) => {
    const { adapter } = await startWith(replyWith(503), () => ({
      [failing]: () => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.')),
    }))
    await postBatch(adapter, batch)
    const again = await postBatch(adapter, batch)
    expect([again.status, JSON.parse(again.text)]).toMatchObject([
      504,
      { error: { code: 'ADP_OUTCOME_UNKNOWN' } },
    ])
  },
)

test('product 3: what was answered is answered again while another instance takes the rest of the batch over', async () => {
  let isDown = true
  let taken: Promise<void> | undefined
  const { adapter } = await startWith(
    (seen, response) => (isDown && seen.body.includes(guid(1)) ? replyWith(503) : echoRecord)(seen, response),
    (journal) => ({
      settle: (number, outcomes, lease) => {
        if (isDown) return journal.settle(number, outcomes, lease)
        // The other instance ends its records some time after this one has lost them.
        taken = setTimeout(300).then(() => journal.settle(number, outcomes, lease))
        return Promise.reject(new AdapterError('ADP_JOURNAL_LOST', 'taken over'))
      },
    }),
  )
  const first = await postBatch(adapter, batch)
  expect(statuses(first)).toEqual([503, 201])
  isDown = false
  const again = await postBatch(adapter, batch)
  await taken
  expect(statuses(again)).toEqual([201, 201])
  const second = (reply: Reply): unknown => readBatchReply(reply)[1]
  expect(second(again)).toEqual(second(first))
})
