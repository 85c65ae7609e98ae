import { expect, test, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import type { Journal } from '../../src/journal/index.ts'
import { batchOf, flatRecords, guid, postBatch, statusesOf } from '../support/batch-request.ts'
import { echoRecord, postsOf, unavailable } from '../support/scripted-upstream.ts'
import { codeOf } from '../support/start-adapter.ts'
import { reopenTogether, startOnJournal } from './support/start-on-journal.ts'

const batch = batchOf(flatRecords(2))
/** Wraps `settle` so that it parks the first record for a retry in the background, as if no client waited for the batch. */
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

test('a resent batch does not get 503 for a record that recovery retries during the resend', async () => {
  let isOpen = false
  const { upstream, adapter } = await startOnJournal(
    (seen, response) => (isOpen ? echoRecord : unavailable)(seen, response),
    (journal) => ({
      settle: parkFirst(journal),
      reopen: reopenTogether(journal),
    }),
  )
  expect(statusesOf(await postBatch(adapter, batch))).toEqual([503, 503])
  isOpen = true
  expect(statusesOf(await postBatch(adapter, batch))).toEqual([201, 201])
  expect(postsOf(upstream.seen).length).toBe(4)
})

test('a resent batch does not get 503 for a parked record while another record of the batch is in progress', async () => {
  const held: (() => void)[] = []
  let posts = 0
  const { adapter, journal } = await startOnJournal(
    (seen, response) => {
      posts += 1
      if (seen.body.includes(guid(1)) && posts < 3) return unavailable(seen, response)
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
  expect(statusesOf(await first)).toEqual([503, 201])
  expect(statusesOf(await joined)).toEqual([201, 201])
})

test('a resent batch gets 504 when its budget ends while the first copy is still in progress', async () => {
  const { adapter } = await startOnJournal(
    echoRecord,
    (journal) => ({
      // Reports every record as open, as if the first copy took longer than any budget.
      load: async (number) => {
        const stored = await journal.load(number)
        return stored && { ...stored, records: stored.records.map((one) => ({ ...one, state: 'open' })) }
      },
      stillOpen: (records) => Promise.resolve(records),
    }),
    { budgetMs: 1_000 },
  )
  expect(statusesOf(await postBatch(adapter, batch))).toEqual([201, 201])
  const joined = await postBatch(adapter, batch)
  expect(codeOf(joined)).toBe('504 ADP_OUTCOME_UNKNOWN')
})

test.each(['load', 'reopen'] as const)(
  'a resent batch gets 504 while the journal fails to %s the batch',
  async (failing) => {
    const { adapter } = await startOnJournal(unavailable, () => ({
      [failing]: () => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.')),
    }))
    await postBatch(adapter, batch)
    const again = await postBatch(adapter, batch)
    expect(codeOf(again)).toBe('504 ADP_OUTCOME_UNKNOWN')
  },
)
