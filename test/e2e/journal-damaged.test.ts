import { rm } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'

import { expect, it, onTestFinished, vi } from 'vitest'

import { adoptJournal, examineJournal, openInspector, openJournal } from '../../src/journal/index.ts'
import { batchOf as openBatch } from '../journal/batches.ts'
import { batchOf, created, flatRecords, outcomesOf, postBatch } from '../support/batch-request.ts'
import { keepMarks, postsOf, startUpstream } from '../support/scripted-upstream.ts'
import { codeOf, onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const batch = batchOf(flatRecords(3))

const startStamping = () =>
  startUpstream(keepMarks((json) => json.replace(/"RecordedOn":"\d{4}/, '"RecordedOn":"2999')))

it('the adapter answers 503 once its journal is deleted, and after adoption it reads records back before it posts them', async () => {
  const upstream = await startStamping()
  const journal = journalFile()
  const file = journal.url.replace('sqlite:', '')
  const partner = onePartner({ v3: { readBackAfterMs: [5] } })
  const posts = () => postsOf(upstream.seen).length
  const adapter = await startAdapter(upstream.url, { ...partner, journal })
  expect(outcomesOf(await postBatch(adapter, batch))).toEqual(created(3))
  await rm(file)
  const refused = await postBatch(adapter, batch)
  expect(codeOf(refused)).toBe('503 ADP_JOURNAL_DAMAGED')
  expect((await adapter.request('GET', '/readyz')).status).toBe(503)
  await vi.waitFor(
    () =>
      expect(adapter.events().filter(({ msg }) => msg === 'journal failed')).toMatchObject([
        { reason: 'its file was deleted or renamed while it was in use' },
      ]),
    60_000,
  )
  await adapter.app.close()
  await expect(startAdapter(upstream.url, { ...partner, journal })).rejects.toMatchObject({
    code: 'ADP_JOURNAL_DAMAGED',
  })
  const condition = await examineJournal({ url: journal.url })
  await adoptJournal({ url: journal.url }, condition, 60_000, Date.now())
  const again = await startAdapter(upstream.url, { ...partner, journal })
  onTestFinished(() => again.app.close())
  expect(outcomesOf(await postBatch(again, batch))).toEqual(created(3))
  expect(posts()).toBe(3)
})

it('the adapter logs damage that it finds during another failure of the journal, and /readyz names the damage', async () => {
  const upstream = await startStamping()
  const journal = journalFile()
  const file = journal.url.replace('sqlite:', '')
  const adapter = await startAdapter(upstream.url, { ...onePartner({}), journal })
  const other = new DatabaseSync(file)
  other.exec('begin immediate')
  expect(codeOf(await postBatch(adapter, batch))).toBe('503 ADP_JOURNAL_UNAVAILABLE')
  await rm(file)
  other.close()
  await vi.waitFor(async () => {
    const ready = await adapter.request('GET', '/readyz')
    expect([ready.status, ready.text]).toEqual([503, '{"status":"journal damaged"}'])
  }, 60_000)
  await vi.waitFor(
    () =>
      expect(adapter.events().filter(({ msg }) => msg === 'journal failed')).toMatchObject([
        { reason: 'another program has locked the database' },
        { reason: 'its file was deleted or renamed while it was in use' },
      ]),
    60_000,
  )
})

/**
 * Runs SQL on the file of a journal, as a person with access to the disk could. Retries while the file is locked, because waiting for the
 * lock would block this process, and with it the transaction of the adapter that holds the lock.
 */
function tamper(url: string, sql: string): Promise<void> {
  return vi.waitFor(() => {
    const database = new DatabaseSync(url.replace('sqlite:', ''))
    try {
      database.exec(sql)
    } finally {
      database.close()
    }
  }, 60_000)
}

it.each([
  ['that was forged in plaintext', true, "update journal_answers set key_id = null, body = cast('[0,2]\n{}' as blob)"],
  ['that was encrypted and then changed', true, "update journal_answers set body = substr(body, 1, length(body) - 1) || x'00'"],
  ['that was stored in plaintext and then changed', false, "update journal_answers set body = substr(body, 1, length(body) - 1) || x'00'"],
  ['whose request was changed', false, "update journal_payloads set body = x'00' || substr(body, 2)"],
])('the adapter sends no stored reply %s', async (_what, encrypted, sql) => {
  const upstream = await startStamping()
  const journal = journalFile({ encrypted })
  const adapter = await startAdapter(upstream.url, { ...onePartner({}), journal })
  const first = await postBatch(adapter, batch)
  expect(first.status).toBe(200)
  await tamper(journal.url, sql)
  const again = await postBatch(adapter, batch)
  expect([again.status, JSON.parse(again.text)]).toMatchObject([
    // V3 applied the records. A 503 would wrongly say that V3 did not apply them.
    504,
    { error: { code: 'ADP_OUTCOME_UNKNOWN', details: [{ code: 'ADP_JOURNAL_DAMAGED' }] } },
  ])
  // The damage concerns one batch only, so the adapter still accepts other batches.
  expect((await adapter.request('GET', '/readyz')).status).toBe(200)
  const other = batchOf(flatRecords(2), { batch: 'batch_other', boundary: 'batch_other' })
  expect((await postBatch(adapter, other)).status).toBe(200)
}) // prettier-ignore

it('open records become dead letters at once if their encrypted request in the journal was changed', async () => {
  const upstream = await startStamping()
  const journal = journalFile({ encrypted: true })
  const key = { id: 'k1', key: Buffer.from('ab'.repeat(32), 'hex') }
  const left = await openJournal({ url: journal.url, keys: [key] })
  await left.begin(openBatch(['a', 'b']))
  await left.close()
  await tamper(journal.url, "update journal_payloads set body = substr(body, 1, length(body) - 1) || x'00'")
  const adapter = await startAdapter(upstream.url, { ...onePartner({}), journal })
  const inspector = await openInspector(journal.url)
  onTestFinished(() => inspector.close())
  await vi.waitFor(
    async () =>
      expect(await inspector.deadLetters({ limit: 9 })).toMatchObject([
        { position: 0, state: 'unknown', reason: 'damaged' },
        { position: 1, state: 'unknown', reason: 'damaged' },
      ]),
    60_000,
  )
  expect(upstream.seen).toEqual([])
  expect(adapter.events().filter(({ msg }) => msg === 'recovery failed')).toMatchObject([
    { code: 'ADP_JOURNAL_DAMAGED' },
  ])
})
