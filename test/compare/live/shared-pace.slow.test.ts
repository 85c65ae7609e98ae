import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

import { createRateSharing } from '../../../src/app/journal.ts'
import { systemClock } from '../../../src/clock.ts'
import { createPacedSides, type PacedSide, type PacedSides } from '../../../src/compare/live/paced-side.ts'
import { type DurableJournal, openJournal } from '../../../src/journal/index.ts'
import { createRateLimit, type RateLimit } from '../../../src/upstream/index.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { partner } from '../../partners/partner.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../../support/start-postgres.ts'

interface Instance {
  readonly journal: DurableJournal
  readonly sides: PacedSides
  /** The rate limit of its clients. */
  readonly clients: RateLimit
}

/** Other instances learn of a 429 from the journal, some time after it. */
const untilSilent = (paced: PacedSide, clients?: RateLimit) =>
  vi.waitFor(() => expect(paced.open(5_000, clients).take()).rejects.toMatchObject({ reason: 'silence' }), {
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
      const sharing = createRateSharing()
      sharing.use(journal.rateLimit)
      return {
        journal,
        sides: createPacedSides(systemClock, stop.signal, sharing.store),
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
      instances.map(async ({ sides }, index) => {
        const paced = sides.of(acme(25), 'v2')
        while (!isSeen() && performance.now() < endMs) {
          await paced.alone(() => Promise.resolve(paced.open(20_000, undefined).take()))
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
    const others = sides.map(([rate, side]) => other.sides.of(acme(rate), side))
    for (const paced of others) await paced.open(5_000, undefined).take()
    for (const [rate, side] of sides) one.sides.of(acme(rate), side).silence()
    for (const paced of others) await untilSilent(paced)
    expect(others.map((paced) => paced.isSilent())).toEqual([true, true])
    expect(await other.clients.acquire('write', systemClock.nowMs() + 5_000)).toMatchObject({
      admitted: true,
    })
  })

  it('is silent on all of them after a 429 to a client of one', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const [one, other] = instances
    one.clients.pauseFor(20)
    await untilSilent(other.sides.of(acme(25), 'v3'), other.clients)
  })

  it('lets no call leave while the journal cannot be reached', async ({ skip }) => {
    const instances = await start()
    if (instances === undefined) return skip()
    const [one, other] = instances
    const paced = other.sides.of(acme(25), 'v3')
    await paced.open(5_000, undefined).take()
    await other.journal.close()
    // Until what is known and reserved is a second old.
    await new Promise((resolve) => setTimeout(resolve, 1_050))
    await expect(paced.open(1_500, undefined).take()).rejects.toMatchObject({ reason: 'pace' })
    await one.sides.of(acme(25), 'v3').open(5_000, undefined).take()
  })
})

describe('the pace of an instance before its journal is open', () => {
  it('lets no call leave, and tells the others of a 429 once it is', async () => {
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const journal = await openJournal({ url: `sqlite:${await makeFolder()}/journal.db` })
    onTestFinished(() => journal.close())
    const [late, opened] = [createRateSharing(), createRateSharing()]
    opened.use(journal.rateLimit)
    const paceOf = ({ store }: typeof late): PacedSide =>
      createPacedSides(systemClock, stop.signal, store).of(acme(25), 'v3')
    const [mine, others] = [paceOf(late), paceOf(opened)]
    await expect(mine.open(900, undefined).take()).rejects.toMatchObject({ reason: 'pace' })
    mine.silence()
    await others.open(5_000, undefined).take()
    late.use(journal.rateLimit)
    await untilSilent(others)
  })
})

let postgres: TestPostgres | undefined
beforeAll(async () => {
  if (missingPostgres() === undefined) postgres = await startPostgres()
})
afterAll(() => postgres?.close())
