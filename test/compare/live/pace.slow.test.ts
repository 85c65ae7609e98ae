import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

import { createSharedStores } from '../../../src/app/journal.ts'
import { systemClock } from '../../../src/clock.ts'
import { type ClientLimit, createPace, type Pace } from '../../../src/compare/live/pace.ts'
import { type DurableJournal, openJournal } from '../../../src/journal/index.ts'
import type { Side } from '../../../src/rollout/index.ts'
import { createRateLimit, type RateLimit } from '../../../src/upstream/index.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { partner } from '../../partners/partner.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'

interface Instance {
  readonly journal: DurableJournal
  readonly pace: Pace
  /** The rate limit of its clients. */
  readonly clients: RateLimit
}

/** Other instances learn of a 429 from the journal, some time after it. */
const untilSilent = (pace: Pace, rate: number | undefined, side: Side, clients?: ClientLimit) =>
  vi.waitFor(async () => expect(await pace.acquire(acme(rate), side, 5_000, clients)).toBe('silence'), {
    timeout: 60_000,
  })

const acme = (callsPerSecond: number | undefined) => ({ ...partner('acme', { any: true }), callsPerSecond })

describe.each([
  ['SQLite', async () => `sqlite:${await makeFolder()}/journal.db`],
  ['PostgreSQL', () => postgres?.createDatabase()],
])('the pace of instances with one journal in %s', (_name, makeUrl) => {
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
        pace: createPace(systemClock, stop.signal, sharing.rateLimit),
        clients: createRateLimit({
          callsPerSecond: 25,
          clock: systemClock,
          slots: sharing.slotsOf('subscription key'),
        }),
      }
    }
    return [await open(), await open()]
  }

  it('is a fifth of the calls of the partner, for all of them together', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const left: number[] = []
    const counts: [number, number] = [0, 0]
    const beganMs = performance.now()
    const endMs = beganMs + 20_000
    // Until both have had their calls, and enough of them left to see their pace.
    const isSeen = () => left.length >= 10 && Math.min(...counts) >= 2
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
    // From the beginning: a call that is late must not count as the next one being early.
    for (const [index, leftMs] of left.entries())
      expect(leftMs - beganMs).toBeGreaterThan((index * 1_000) / 5 - 50)
    expect(left.length).toBeGreaterThanOrEqual(10)
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(2)
  })

  it('is silent on all of them after a 429, and holds back no client', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const [one, other] = instances
    // With a limit, and where nothing limits the calls.
    const sides = [[25, 'v3'], [undefined, 'v2']] as const // prettier-ignore
    for (const [rate, side] of sides)
      expect(await other.pace.acquire(acme(rate), side, 5_000, undefined)).toBeUndefined()
    for (const [rate, side] of sides) one.pace.throttled(acme(rate), side)
    for (const [rate, side] of sides) await untilSilent(other.pace, rate, side)
    expect(other.pace.silent()).toHaveLength(2)
    expect(await other.clients.acquire('write', 5_000)).toMatchObject({
      admitted: true,
    })
  })

  it('is silent on all of them after a 429 to a client of one', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const [one, other] = instances
    one.clients.pauseFor(20)
    await untilSilent(other.pace, 25, 'v3', other.clients)
  })

  it('lets no call leave while the journal cannot be reached', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const [one, other] = instances
    const ask = ({ pace }: Instance, timeMs: number) => pace.acquire(acme(25), 'v3', timeMs, undefined)
    expect(await ask(other, 5_000)).toBeUndefined()
    await other.journal.close()
    expect(await ask(other, 1_500)).toBe('pace')
    expect(await ask(one, 5_000)).toBeUndefined()
  })
})

describe('the pace of an instance before its journal is open', () => {
  it('lets no call leave, and tells the others of a 429 once it is', async () => {
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const journal = await openJournal({ url: `sqlite:${await makeFolder()}/journal.db` })
    onTestFinished(() => journal.close())
    const [late, opened] = [createSharedStores(), createSharedStores()]
    opened.use(journal)
    const paceOf = ({ rateLimit }: typeof late): Pace => createPace(systemClock, stop.signal, rateLimit)
    const [mine, others] = [paceOf(late), paceOf(opened)]
    expect(await mine.acquire(acme(25), 'v3', 900, undefined)).toBe('pace')
    mine.throttled(acme(25), 'v3')
    expect(await others.acquire(acme(25), 'v3', 5_000, undefined)).toBeUndefined()
    late.use(journal)
    await untilSilent(others, 25, 'v3')
  })
})

let postgres: TestPostgres | undefined
beforeAll(async () => {
  if (missingPostgres() === undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.close())
