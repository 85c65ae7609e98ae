import { expect, it } from 'vitest'

import { adoptJournal } from '../../src/journal/adopt.ts'
import { openAgeing } from '../../src/journal/retention.ts'
import { START_MS } from './batches.ts'
import { createJournalClock, makeFolder, openSqlite } from './open-sqlite.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

it('an adopted journal requires a read-back before each post for the whole replay period, even if the wall clock is set forward', async () => {
  const file = `${await makeFolder()}/journal.db`
  const before = await openSqlite(file)
  await before.journal.close()
  await adoptJournal({ url: `sqlite:${file}` }, { usable: true }, DAY_MS, START_MS)
  const clock = createJournalClock()
  const { journal } = await openSqlite(file, { clock })
  const mayHaveLost = (): boolean => clock.wallMs() < journal.readBackUntilMs
  clock.setWall(30 * HOUR_MS)
  expect(mayHaveLost()).toBe(true)
  await clock.pass(DAY_MS - 1)
  expect(mayHaveLost()).toBe(true)
  await clock.pass(1)
  expect(mayHaveLost()).toBe(false)
})

it('the age of a journal grows by one hour per hour, however many instances are open, and continues after a restart', async () => {
  const file = `${await makeFolder()}/journal.db`
  const clock = createJournalClock()
  const { store } = await openSqlite(file, { clock })
  const open = () => openAgeing({ store, clock, replayForMs: DAY_MS })
  const [one, other] = [await open(), await open()]
  for (let hour = 0; hour < 12; hour += 1) {
    await clock.pass(HOUR_MS)
    await one.save()
    await other.save()
  }
  const next = await open()
  expect([one, other, next].map((each) => each.ageMs())).toEqual(Array(3).fill(12 * HOUR_MS))
  // The age of another instance may be lower by the interval at which ages are stored (a 96th of a day), so `forgottenAgeMs` is lower too.
  await clock.pass(12 * HOUR_MS)
  expect([next.ageMs(), next.forgottenAgeMs()]).toEqual([DAY_MS, -DAY_MS / 96])
  // An instance whose age is lower than the stored age takes over the stored age when it saves.
  await one.save()
  await clock.pass(HOUR_MS)
  const late = await open()
  await next.save()
  await late.save()
  expect([late.ageMs(), next.forgottenAgeMs()]).toEqual([25 * HOUR_MS, HOUR_MS - DAY_MS / 96])
})
