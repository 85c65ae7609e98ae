import { describe, expect, it, vi } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createLateJournal } from '../../src/journal/late-journal.ts'
import { createNoJournal, type Journal } from '../../src/journal/index.ts'
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

describe('createLateJournal', () => {
  it('fails every call until its store can be reached, then is that journal', async () => {
    const clock = createManualClock()
    const failures: unknown[] = []
    let attempts = 0
    const open = (): Promise<Journal> => {
      attempts += 1
      if (attempts < 3) return Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'away'))
      return Promise.resolve(createNoJournal())
    }
    const late = createLateJournal({
      open,
      clock,
      onFailed: (cause) => void failures.push(cause),
      onOpened: () => undefined,
    })
    await expect(late.begin(batch)).rejects.toEqual(unavailable)
    expect([late.lease(), late.isAvailable()]).toEqual([undefined, false])
    expect(() => late.linkSecret).toThrow('has not been reached')
    for (const count of [1, 2]) {
      await vi.waitFor(() => expect(failures).toHaveLength(count), 60_000)
      await clock.pass(1_000)
    }
    await vi.waitFor(() => expect(late.isAvailable()).toBe(true), 60_000)
    expect(await late.begin(batch)).toMatchObject({ kind: 'new' })
    await late.close()
  })

  it('closes a journal that opens after it was closed', async () => {
    let finish: (journal: Journal) => void = () => undefined
    const own = createNoJournal()
    const close = vi.spyOn(own, 'close')
    const late = createLateJournal({
      open: () => new Promise<Journal>((resolve) => (finish = resolve)),
      clock: createManualClock(),
      onFailed: () => undefined,
      onOpened: () => undefined,
    })
    const closing = late.close()
    finish(own)
    await closing
    expect([close.mock.calls.length, late.isAvailable()]).toEqual([1, false])
  })
})
