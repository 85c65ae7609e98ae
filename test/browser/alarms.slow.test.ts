import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import type { Alarm } from '../../src/console/alarms.ts'
import { serveConsole, type ServedConsole, tokenOf } from '../console/support/serve-console.ts'
import { batchOf } from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { missingPostgres, startPostgres } from '../support/start-postgres.ts'
import { type Opened, openWindow } from './look-at-console.ts'
import { startBrowser } from './start-browser.ts'

const onEnd = atEndOfFile()
const browser: Browser | undefined = await startBrowser()
const TIME_MS = 60_000

/** A pause in seconds. It exceeds the budget of a write, so the adapter does not retry, but a test has time for a resend after it. */
const late = { 'Retry-After': '6' }
const down = { kind: 'status', status: 503, headers: late, face: 'V3' }

const schools = Array.from({ length: 60 }, (_, at) => `school-${at}`)
/** Creates a partner at canary, with V3 for half of its schools. */
const halfOnV3 = (id: string, guard: 'back' | 'warn') => ({
  ...{ id, guard, stage: 'canary', match: { header: { name: 'x-partner', value: id } } },
  canary: { percent: 0, header: 'x-school', always: schools.slice(30) },
  v3: { budgetMs: 5_000 },
})

let served: ServedConsole
let window: Opened
beforeAll(async () => {
  served = await serveConsole(onEnd, undefined, [halfOnV3('beacon', 'back'), halfOnV3('cedar', 'warn')])
  window = await openOverview(served)
})
afterAll(() => browser?.close())

async function openOverview({ url }: ServedConsole): Promise<Opened> {
  const opened = await openWindow(browser, url, tokenOf('olga'))
  await opened.page.goto('/')
  return opened
}

/** Posts a mark of a school as one batch. */
function postOf(partner: string, school: string): Promise<unknown> {
  const batch = `batch_${randomUUID()}`
  const headers = { 'x-partner': partner, 'x-school': school }
  return served.post(batchOf([served.mark()], { batch, boundary: batch }), headers)
}

/** Makes V3 fail writes until the guard of each partner raises an alarm. A guard counts one write of each school in a window of 10 s. */
async function failOnV3(...partners: readonly string[]): Promise<void> {
  for (const partner of partners) await postOf(partner, 'school-59')
  await served.setFaults(down)
  await vi.waitFor(
    async () => {
      await Promise.all(partners.flatMap((partner) => schools.map((school) => postOf(partner, school))))
      const { alarms } = JSON.parse((await served.ask('olga', '/')).text) as { alarms: readonly Alarm[] }
      expect(alarms.filter(({ kind }) => kind.startsWith('guard'))).toHaveLength(partners.length)
    },
    { timeout: TIME_MS, interval: 5_000 },
  )
}

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
  // Repeats the action, because the lists leave out a record while the adapter is still processing it.
  await vi.waitFor(async () => {
    const done = await served.ask('olga', path, { all: '1', reason: 'V3 is back' })
    expect(done.status).toBe(200)
  }, TIME_MS)
}

const step = async (who: string, partner: string, form: Readonly<Record<string, string>>): Promise<void> => {
  expect((await served.ask(who, `/partners/${partner}`, { reason: 'a test', ...form })).status).toBe(200)
}

/**
 * Opens the journal to change it as another instance would. Returns a function that runs a statement, and retries while the adapter holds
 * the lock, because a statement that waits for the lock would block the adapter, which runs in this thread.
 */
function openJournalFile(): (statement: string) => Promise<void> {
  const file = new DatabaseSync(`${served.folder}/journal.db`)
  onEnd(() => {
    file.close()
    return Promise.resolve()
  })
  return (statement) => vi.waitFor(() => file.exec(statement), TIME_MS)
}

/**
 * Alarms, each with a function that causes the alarm and returns a function that ends it. Causes without calls to V3 come first. Otherwise
 * the successful call of the first test and a failed call could share an interval, and `v3Fails` needs more than half of the calls to fail.
 */
const causes: readonly (readonly [readonly Alarm['kind'][], () => Promise<() => Promise<unknown>>])[] = [
  [['stepWaits'], async () => {
    await step('otto', 'zenith', { step: 'set', stage: 'shadow' })
    return () => step('anna', 'zenith', { step: 'back' })
  }],
  [['trailBroken'], async () => {
    const change = openJournalFile()
    await change(`update rollout_audit set content = content || ' ' where entry = 1`)
    return () => change(`update rollout_audit set content = rtrim(content) where entry = 1`)
  }],
  [['instanceGone'], async () => {
    const change = openJournalFile()
    await change(`insert into journal_instances (host, boot, pid, started, lease_until, lease_ms, lost) values ('mb-9', '', 1, '', 1, 1, 1)`)
    return () => change(`delete from journal_instances where host = 'mb-9'`)
  }],
  [['journalDamaged'], async () => {
    const change = openJournalFile()
    // The first record of a new partner makes the console check all balances at once.
    await change(`update journal_ledger set confirmed = confirmed - 1 where partner = 'acme'`)
    await postOf('beacon', 'school-1')
    return async () => {
      await change(`update journal_ledger set confirmed = confirmed + 1 where partner = 'acme'`)
      await postOf('cedar', 'school-1')
    }
  }],
  [['journalUnavailable'], async () => {
    const change = openJournalFile()
    await change('begin immediate')
    await postOf('acme', 'school-1')
    return () => change('rollback')
  }],
  [['v2Fails'], async () => {
    await served.sandbox.v2.put('faults', { kind: 'status', status: 503 })
    const batch = batchOf([served.mark()])
    const send = () => served.post(batch, { 'x-partner': 'zenith' })
    await send()
    return async () => {
      await served.sandbox.v2.request('DELETE', '/_sandbox/faults')
      await send()
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
  [['guardActed', 'guardWarns'], async () => {
    await failOnV3('beacon', 'cedar')
    return async () => {
      await served.setFaults()
      await step('anna', 'beacon', { step: 'back' })
      await step('anna', 'cedar', { step: 'back' })
    }
  }],
] // prettier-ignore

/** Checks that an open page shows the alarms after their cause, and no longer shows them after the cure. */
async function expectWhile(
  { page, events }: Opened,
  kinds: readonly Alarm['kind'][],
  cause: () => Promise<() => Promise<unknown>>,
): Promise<void> {
  const alarms = kinds.map((kind) => page.locator(`[data-alarm="${kind}"]`))
  for (const alarm of alarms) expect(await alarm.count()).toBe(0)
  const cure = await cause()
  for (const alarm of alarms) await alarm.first().waitFor({ timeout: TIME_MS })
  expect(await page.title()).toMatch(/^\d+ alarms? · Markbridge$/)
  await cure()
  for (const alarm of alarms) await alarm.first().waitFor({ state: 'detached', timeout: TIME_MS })
  expect(events).toEqual([])
}

describe.skipIf(browser === undefined)('the overview in Chromium, over the adapter and the sandbox', () => {
  test('is green if every alarm has been checked and none is active', { timeout: TIME_MS }, async () => {
    await postUnder([])
    await window.page.locator('.notice.good').waitFor({ timeout: TIME_MS })
    expect(await window.page.title()).toBe('No alarms · Markbridge')
  })

  test.for(causes)(
    'shows an alarm on an open page for as long as the cause of the alarm lasts: %s',
    { timeout: 3 * TIME_MS },
    ([kinds, cause]) => expectWhile(window, kinds, cause),
  )
})

describe.skipIf(browser === undefined || missingPostgres() !== undefined)(
  'the overview over PostgreSQL',
  () => {
    test(
      'shows that the journal and the stages cannot be read while the database is down',
      { timeout: 3 * TIME_MS },
      async () => {
        const postgres = await startPostgres()
        onEnd(() => postgres.close())
        const { server } = postgres
        if (server === undefined) return
        const opened = await openOverview(await serveConsole(onEnd, await postgres.createDatabase()))
        await expectWhile(opened, ['journalUnavailable', 'stagesStale'], async () => {
          await server.stop()
          return () => server.start()
        })
      },
    )
  },
)
