import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type Journal, openJournal } from '../../src/journal/index.ts'
import { batchOf, failuresOf, flatRecords, postBatch, readBatchReply } from '../support/batch-request.ts'
import { type Answer, echoOf, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const batch = batchOf(flatRecords(3))
const created = { status: 201, codes: 'record' }
const partner = onePartner({ v3: { readBackAfterMs: [5] } })

/** Takes every mark, and gives it back when its learner is asked for. */
function takeAll(): Answer {
  const marks = new Map<string, string>()
  return (seen, response) => {
    if (seen.method === 'POST') {
      marks.set(/"Attendee":\{"ExternalID":"([^"]+)"/.exec(seen.body)?.[1] ?? '', echoOf(seen))
      return echoRecord(seen, response)
    }
    const [, learner = ''] = /Attendee\/ExternalID eq (\S+)/.exec(decodeURIComponent(seen.url)) ?? []
    const mark = marks.get(learner)
    return replyWith(200, `{"value":[${mark ?? ''}]}`)(seen, response)
  }
}

/** The adapter in front of `url`, with a journal of which `broken` replaces some members. */
async function startBroken(url: string, broken: (journal: Journal) => Partial<Journal>) {
  const journal = await openJournal({ url: journalFile().url })
  onTestFinished(() => journal.close())
  const open = () => Promise.resolve({ ...journal, ...broken(journal) })
  return { journal, adapter: await startAdapter(url, partner, { openJournal: open }) }
}

describe('product 3: what was sent and could not be kept', () => {
  it('is looked for in the background as soon as the journal can be written again', async () => {
    const upstream = await startUpstream(takeAll())
    let failures = 1
    const { journal, adapter } = await startBroken(upstream.url, (whole) => ({
      settle: (...call) =>
        failures-- > 0
          ? Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.'))
          : whole.settle(...call),
    }))
    const first = await postBatch(adapter, batch)
    expect([first.status, JSON.parse(first.text)]).toMatchObject([
      504,
      { error: { code: 'ADP_OUTCOME_UNKNOWN' } },
    ])
    await vi.waitFor(
      async () => expect(await journal.balances()).toMatchObject([{ open: 0, confirmed: 3 }]),
      { timeout: 60_000 },
    )
    expect(failuresOf(readBatchReply(await postBatch(adapter, batch)))).toEqual([created, created, created])
    expect(upstream.seen.filter(({ method }) => method === 'POST').length).toBe(3)
  })
})

it('product 3: sends nothing again of a batch whose answer is not kept any longer', async () => {
  const upstream = await startUpstream()
  const { adapter } = await startBroken(upstream.url, (whole) => ({
    load: async (number) => {
      const stored = await whole.load(number)
      return stored && { ...stored, payload: undefined }
    },
  }))
  expect((await postBatch(adapter, batch)).status).toBe(200)
  const again = await postBatch(adapter, batch)
  expect([again.status, JSON.parse(again.text)]).toMatchObject([504, { error: { code: 'ADP_JOURNAL_LOST' } }])
  expect(upstream.seen.length).toBe(3)
})

it('reads a large batch a few times for a client that joins it, not once for each record', async () => {
  const held: (() => void)[] = []
  let open = false
  const upstream = await startUpstream((seen, response) => {
    if (open) return echoRecord(seen, response)
    held.push(() => void echoRecord(seen, response))
  })
  let loads = 0
  const { adapter } = await startBroken(upstream.url, (whole) => ({
    load: (number) => {
      loads += 1
      return whole.load(number)
    },
    // One after another, as a slow service would have it.
    settle: async (number, outcomes) => {
      for (const outcome of outcomes) await whole.settle(number, [outcome])
    },
  }))
  const large = batchOf(flatRecords(400))
  const first = postBatch(adapter, large)
  await upstream.arrived(1)
  const joined = postBatch(adapter, large)
  await vi.waitFor(() => expect(loads).toBeGreaterThan(0), 60_000)
  open = true
  for (const answer of held) answer()
  const [one, other] = await Promise.all([first, joined])
  expect(readBatchReply(other).map(({ json }) => json)).toEqual(readBatchReply(one).map(({ json }) => json))
  expect(loads).toBeLessThan(120)
})
