import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import type { Alarm } from '../../src/console/alarms.ts'
import { serveConsole, type ServedConsole, tokenOf } from '../console/support/serve-console.ts'
import { batchOf } from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { type Opened, openWindow } from './look-at-console.ts'
import { startBrowser } from './start-browser.ts'

const onEnd = atEndOfFile()
const browser: Browser | undefined = await startBrowser()
const TIME_MS = 60_000

/** Longer than the budget of a write, so that the adapter does not retry, and short enough for a resend. */
const late = { 'Retry-After': '6' }
const down = { kind: 'status', status: 503, headers: late, face: 'V3' }

let served: ServedConsole
let window: Opened
beforeAll(async () => {
  served = await serveConsole(onEnd)
  window = await openWindow(browser, served.url, tokenOf('olga'))
  await window.page.goto('/')
})
afterAll(() => browser?.close())

/** Posts one mark under these faults, and returns a function that removes the faults and resends the batch until V3 accepts it. */
async function postUnder(
  faults: readonly object[],
  headers: Readonly<Record<string, string>> = {},
  isMismatch = false,
): Promise<() => Promise<void>> {
  const { mark, post, setFaults } = served
  await setFaults(...faults)
  const [batch, boundary] = [`batch_${randomUUID()}`, `batch_${randomUUID()}`]
  const text = batchOf([mark()], { batch, boundary: isMismatch ? boundary : batch })
  await post(text, headers)
  return async () => {
    await setFaults()
    await vi.waitFor(async () => {
      const { text: reply } = await post(text)
      expect(reply).toContain('201 Created')
    }, TIME_MS)
  }
}

const actOnAll = (path: string) => async (): Promise<void> => {
  await served.setFaults()
  // A record is in no list while a run has it open.
  await vi.waitFor(async () => {
    const done = await served.ask('olga', path, { all: '1', reason: 'V3 is back' })
    expect(done.status).toBe(200)
  }, TIME_MS)
}

const step = async (who: string, partner: string, form: Readonly<Record<string, string>>): Promise<void> => {
  expect((await served.ask(who, `/partners/${partner}`, { reason: 'a test', ...form })).status).toBe(200)
}

/** Opens the journal to change it as another instance would. */
function openJournalFile(): DatabaseSync {
  const file = new DatabaseSync(`${served.folder}/journal.db`, { timeout: 10_000 })
  onEnd(() => {
    file.close()
    return Promise.resolve()
  })
  return file
}

/**
 * The alarms of each cause, which returns the cure. The alarms without calls come first. Otherwise the mark of the first test would be in
 * the same report as the failed call, so that half of the calls would have succeeded.
 */
const causes: readonly (readonly [readonly Alarm['kind'][], () => Promise<() => Promise<unknown>>])[] = [
  [['stepWaits'], async () => {
    await step('otto', 'zenith', { step: 'set', stage: 'shadow' })
    return () => step('anna', 'zenith', { step: 'back' })
  }],
  [['instanceGone'], async () => {
    const file = openJournalFile()
    file.exec(`insert into journal_instances (host, boot, pid, started, lease_until, lease_ms, lost) values ('mb-9', '', 1, '', 1, 1, 1)`)
    return () => {
      file.exec(`delete from journal_instances where host = 'mb-9'`)
      return Promise.resolve()
    }
  }],
  [['v3Fails'], () => postUnder([down])],
  [['notApplied'], () => postUnder([down])],
  [['v3Throttles'], () => postUnder([{ ...down, status: 429 }])],
  [['denied', 'ownDenied'], async () => {
    await postUnder([], { Authorization: 'bearer wrong' })
    await served.reload({ subscriptionKey: new Secret('revoked') })
    const resend = await postUnder([])
    return async () => {
      await served.reload()
      await resend()
    }
  }],
  [['unknown'], async () => {
    await served.reload({ readBackAfterMs: [10] })
    await postUnder([{ ...down, status: 500 }])
    return actOnAll('/letters?kind=parked')
  }],
  [['parked'], async () => {
    await postUnder([down], {}, true)
    return actOnAll('/letters?kind=parked')
  }],
  [['deadLetters'], async () => {
    await served.setFaults()
    await served.postMarks([served.mark({ SchoolAttendanceCode: randomUUID() })], true)
    return actOnAll('/letters')
  }],
] // prettier-ignore

describe.skipIf(browser === undefined)('the overview in Chromium, over the adapter and the sandbox', () => {
  test('is green once every alarm was checked and none is on', { timeout: TIME_MS }, async () => {
    await postUnder([])
    await window.page.locator('.notice.good').waitFor({ timeout: TIME_MS })
    expect(await window.page.title()).toBe('No alarms · Markbridge')
  })

  test.for(causes)(
    'shows alarms as long as their cause lasts, in a page that stays open: %s',
    { timeout: 3 * TIME_MS },
    async ([kinds, cause]) => {
      const alarms = kinds.map((kind) => window.page.locator(`[data-alarm="${kind}"]`))
      for (const alarm of alarms) expect(await alarm.count()).toBe(0)
      const cure = await cause()
      for (const alarm of alarms) await alarm.first().waitFor({ timeout: TIME_MS })
      expect(await window.page.title()).toMatch(/^\d+ alarms? · Markbridge$/)
      await cure()
      for (const alarm of alarms) await alarm.first().waitFor({ state: 'detached', timeout: TIME_MS })
      expect(window.events).toEqual([])
    },
  )
})
