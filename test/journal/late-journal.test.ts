import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createNoJournal, type Journal, openJournalLater } from '../../src/journal/index.ts'
import { createManualClock } from '../support/manual-clock.ts'

const batch = {
  partner: 'acme',
  owner: 'o',
  ids: undefined,
  content: new Uint8Array(0),
  receivedMs: 1,
  payload: new Uint8Array(0),
  credentials: undefined,
  records: [{ key: 'k' }],
}
const unavailable = expect.objectContaining({ code: 'ADP_JOURNAL_UNAVAILABLE' }) as unknown

const away = (): Promise<Journal> => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'away'))

/**
 * Opens a journal. The first attempts have the results of `openings`, and the next attempt succeeds. `reports` collects the reported
 * failures and recoveries.
 */
async function openLate(openings: (() => Promise<Journal>)[]) {
  const clock = createManualClock()
  const reports: string[] = []
  const events = {
    journalFailed: ({ reason }: { readonly reason: string }) => void reports.push(reason),
    journalRecovered: () => void reports.push('recovered'),
  }
  let attempts = 0
  const open = (): Promise<Journal> => openings[attempts++]?.() ?? Promise.resolve(createNoJournal())
  const late = await openJournalLater(open, events, clock)
  return { late, clock, reports, attempts: () => attempts }
}

describe('openJournalLater', () => {
  it('returns a journal that rejects every call until its store is reachable, and then works', async () => {
    const { late, clock, reports, attempts } = await openLate([away, away, away])
    await expect(late.begin(batch)).rejects.toEqual(unavailable)
    expect([late.lease(), late.isAvailable()]).toEqual([undefined, false])
    expect(() => late.linkSecret).toThrow('has not been reached')
    for (const count of [2, 3]) {
      await vi.waitFor(() => expect(attempts()).toBe(count), 60_000)
      await clock.pass(1_000)
    }
    await vi.waitFor(() => expect(late.isAvailable()).toBe(true), 60_000)
    expect(await late.begin(batch)).toMatchObject({ kind: 'new' })
    expect(reports).toEqual(['away', 'recovered'])
    await late.close()
  })

  it('closes a journal that opened only after close() was called', async () => {
    let finish: (journal: Journal) => void = () => undefined
    const own = createNoJournal()
    const close = vi.spyOn(own, 'close')
    const { late } = await openLate([away, () => new Promise((resolve) => (finish = resolve))])
    const closing = late.close()
    finish(own)
    await closing
    expect([close.mock.calls.length, late.isAvailable()]).toEqual([1, false])
  })

  it('rejects immediately if the journal refuses its configuration', async () => {
    const refused = new AdapterError('ADP_CONFIGURATION', 'no such key')
    await expect(openLate([() => Promise.reject(refused)])).rejects.toBe(refused)
  })
})
