import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import {
  batchOf,
  created,
  flatRecords,
  outcomesOf,
  postBatch,
  readBatchReply,
} from '../support/batch-request.ts'
import { holdAnswers, keepMarks, postsOf } from '../support/scripted-upstream.ts'
import { codeOf } from '../support/start-adapter.ts'
import { startOnJournal } from './support/start-on-journal.ts'

const batch = batchOf(flatRecords(3))
const v3 = { readBackAfterMs: [5] }

describe('an outcome that the journal could not store', () => {
  it('is read back in the background when the journal can be written again', async () => {
    let failures = 1
    const { upstream, journal, adapter } = await startOnJournal(
      keepMarks(),
      (whole) => ({
        settle: (...call) =>
          failures-- > 0
            ? Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.'))
            : whole.settle(...call),
      }),
      v3,
    )
    const first = await postBatch(adapter, batch)
    expect(codeOf(first)).toBe('504 ADP_OUTCOME_UNKNOWN')
    await vi.waitFor(
      async () => expect(await journal.balances()).toMatchObject([{ open: 0, confirmed: 3 }]),
      60_000,
    )
    expect(outcomesOf(await postBatch(adapter, batch))).toEqual(created(3))
    expect(postsOf(upstream.seen).length).toBe(3)
  })
})

it('the adapter posts no record of a resent batch if the stored reply has expired meanwhile', async () => {
  const { upstream, adapter } = await startOnJournal(undefined, (whole) => ({
    load: async (number) => {
      const stored = await whole.load(number)
      return stored && { ...stored, payload: undefined }
    },
  }))
  expect((await postBatch(adapter, batch)).status).toBe(200)
  const again = await postBatch(adapter, batch)
  expect(codeOf(again)).toBe('504 ADP_RESULT_LOST')
  expect(upstream.seen.length).toBe(3)
})

it('the adapter, if a client joins a large batch, loads the batch from the journal only a few times, not once for each record', async () => {
  const { answer, release } = holdAnswers()
  let loads = 0
  const { upstream, adapter } = await startOnJournal(answer, (whole) => ({
    load: (number) => {
      loads += 1
      return whole.load(number)
    },
    // Stores each outcome in a call of its own, as if a slow service answered one record after another.
    settle: async (number, outcomes) => {
      for (const outcome of outcomes) await whole.settle(number, [outcome])
    },
  }))
  const large = batchOf(flatRecords(400))
  const first = postBatch(adapter, large)
  await upstream.arrived(1)
  const joined = postBatch(adapter, large)
  await vi.waitFor(() => expect(loads).toBeGreaterThan(0), 60_000)
  release()
  const [one, other] = await Promise.all([first, joined])
  expect(readBatchReply(other).map(({ json }) => json)).toEqual(readBatchReply(one).map(({ json }) => json))
  expect(loads).toBeLessThan(120)
})
