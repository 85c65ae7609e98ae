import { rm } from 'node:fs/promises'

import { expect, it, onTestFinished, vi } from 'vitest'

import { adoptJournal, examineJournal } from '../../src/journal/index.ts'
import { batchOf, failuresOf, flatRecords, postBatch, readBatchReply } from '../support/batch-request.ts'
import { echoOf, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const batch = batchOf(flatRecords(3))
const created = { status: 201, codes: 'record' }

/** Takes every mark and stamps it with a time of its own, which is later; gives it back when its learner is asked for. */
const startStamping = () => {
  const marks = new Map<string, string>()
  const stamp = (json: string): string => json.replace(/"RecordedOn":"\d{4}/, '"RecordedOn":"2999')
  return startUpstream((seen, response) => {
    if (seen.method === 'POST') {
      marks.set(/"Attendee":\{"ExternalID":"([^"]+)"/.exec(seen.body)?.[1] ?? '', stamp(echoOf(seen)))
      return echoRecord(seen, response)
    }
    const [, learner = ''] = /Attendee\/ExternalID eq (\S+)/.exec(decodeURIComponent(seen.url)) ?? []
    return replyWith(200, `{"value":[${marks.get(learner) ?? ''}]}`)(seen, response)
  })
}

it('product 3: a journal that was deleted in use answers 503, is not ready, and once adopted looks before it posts', async () => {
  const upstream = await startStamping()
  const journal = journalFile()
  const file = journal.url.replace('sqlite:', '')
  const partner = onePartner({ v3: { readBackAfterMs: [5] } })
  const posts = () => upstream.seen.filter(({ method }) => method === 'POST').length
  const adapter = await startAdapter(upstream.url, { ...partner, journal })
  expect(failuresOf(readBatchReply(await postBatch(adapter, batch)))).toEqual([created, created, created])
  await rm(file)
  const refused = await postBatch(adapter, batch)
  expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
    503,
    { error: { code: 'ADP_JOURNAL_DAMAGED' } },
  ])
  expect((await adapter.request('GET', '/readyz')).status).toBe(503)
  await vi.waitFor(() =>
    expect(adapter.events().filter(({ msg }) => msg === 'journal failed')).toMatchObject([
      { reason: 'its file was deleted or renamed while it was in use' },
    ]),
  )
  await adapter.app.close()
  await expect(startAdapter(upstream.url, { ...partner, journal })).rejects.toMatchObject({
    code: 'ADP_JOURNAL_DAMAGED',
  })
  const condition = await examineJournal({ url: journal.url })
  await adoptJournal({ url: journal.url }, condition, 60_000, Date.now())
  const again = await startAdapter(upstream.url, { ...partner, journal })
  onTestFinished(() => again.app.close())
  expect(failuresOf(readBatchReply(await postBatch(again, batch)))).toEqual([created, created, created])
  expect(posts()).toBe(3)
})
