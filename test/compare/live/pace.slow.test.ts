import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

import { createSharedStores } from '../../../src/app/journal.ts'
import { systemClock } from '../../../src/clock.ts'
import { createPace, type Pace } from '../../../src/compare/live/pace.ts'
import { type DurableJournal, openJournal } from '../../../src/journal/index.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { partner } from '../../partners/partner.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'

interface Instance {
  readonly journal: DurableJournal
  readonly pace: Pace
}

const acme = (callsPerSecond: number) => ({ ...partner('acme', { any: true }), callsPerSecond })

describe.each([
  ['SQLite', async () => `sqlite:${await makeFolder()}/journal.db`],
  ['PostgreSQL', () => postgres?.createDatabase()],
])('createPace for two instances that share a journal in %s', (_name, makeUrl) => {
  async function start(): Promise<readonly [Instance, Instance] | undefined> {
    const url = await makeUrl()
    if (url === undefined) return undefined
    const open = async (): Promise<Instance> => {
      const journal = await openJournal({ url })
      const stop = new AbortController()
      onTestFinished(async () => {
        stop.abort()
        await journal.close()
      })
      const sharing = createSharedStores()
      sharing.use(journal)
      return {
        journal,
        pace: createPace(systemClock, stop.signal, sharing.slotsOf),
      }
    }
    return [await open(), await open()]
  }

  it('allows both instances together a fifth of the calls per second of the partner', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const left: number[] = []
    const counts: [number, number] = [0, 0]
    const endMs = performance.now() + 20_000
    // The loop continues until both instances have made calls, and until there are enough calls to measure the rate.
    const isSeen = () => left.length >= 15 && Math.min(...counts) >= 2
    await Promise.all(
      instances.map(async ({ pace }, index) => {
        while (!isSeen() && performance.now() < endMs) {
          await pace.acquire(acme(25), 'v2', 20_000, undefined)
          left.push(performance.now())
          counts[index] = (counts[index] ?? 0) + 1
        }
      }),
    )
    left.sort((one, other) => one - other)
    // Any six successive calls take more than a second.
    for (const [index, leftMs] of left.entries())
      expect(leftMs - (left[index - 5] ?? -Infinity)).toBeGreaterThan(1_000)
    expect(left.length).toBeGreaterThanOrEqual(15)
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(2)
  })

  it('allows no call while the journal is unreachable', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const [one, other] = instances
    const ask = ({ pace }: Instance, timeMs: number) => pace.acquire(acme(25), 'v3', timeMs, undefined)
    expect(await ask(other, 5_000)).toBeUndefined()
    await other.journal.close()
    // Slots that were reserved earlier remain valid for a second.
    await vi.waitFor(async () => expect(await ask(other, 1_500)).toBe('pace'), 10_000)
    expect(await ask(one, 5_000)).toBeUndefined()
  })
})

it('createPace allows no call before the instance has opened its journal', async () => {
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const journal = await openJournal({ url: `sqlite:${await makeFolder()}/journal.db` })
  onTestFinished(() => journal.close())
  const late = createSharedStores()
  const pace = createPace(systemClock, stop.signal, late.slotsOf)
  expect(await pace.acquire(acme(25), 'v3', 900, undefined)).toBe('pace')
  late.use(journal)
  expect(await pace.acquire(acme(25), 'v3', 5_000, undefined)).toBeUndefined()
})

let postgres: TestPostgres | undefined
beforeAll(async () => {
  if (missingPostgres() === undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.close())
