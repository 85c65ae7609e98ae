import { sql } from 'kysely'
import { describe, expect, onTestFinished } from 'vitest'

import { type ConsoleEngine, openConsoleEngine } from '../../../src/console/data/engine.ts'
import { openConsoleDatabase } from '../../../src/console/data/open-database.ts'
import type { RecordRow, SearchResult } from '../../../src/console/data/port.ts'
import { createStepQueue, observeJournal } from '../../../src/console/data/steps.ts'
import { eraseFromConsole } from '../../../src/console/data/sweep.ts'
import { AdapterError } from '../../../src/errors.ts'
import { type DurableJournal, type Journal, openInspector, openJournal, type Settled } from '../../../src/journal/index.ts'
import { openStore } from '../../../src/journal/open-store.ts'
import { batchOf, beginNew, confirmed } from '../../journal/batches.ts'
import { eachDatabase } from '../../support/each-database.ts'

const keys = [{ id: 'k1', key: Buffer.alloc(32, 5) }]
const how = { keys, plaintextAccepted: false }
const guid = (n: number): string => `0a000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const [LEARNER, OTHER, EVENT, MARK] = [guid(1), guid(2), guid(3), guid(4)]
const begin = (): Promise<void> => Promise.resolve()
const LATER_MS = Date.now() + 600_000

/** Decodes the requests of these tests, which are JSON. Any other text counts as unreadable. */
function readRequest(payload: Uint8Array) {
  const text = Buffer.from(payload).toString()
  if (!text.startsWith('{')) return Promise.reject(new AdapterError('ADP_INTERNAL', 'no request'))
  return Promise.resolve(JSON.parse(text) as { boundary: string; records: [] })
}

/** Creates a batch with one record for each learner at one event, with the Content-IDs 1, 2, …. */
const registerOf = (name: string, learners: readonly string[], given: Parameters<typeof batchOf>[1] = {}) =>
  batchOf(learners.map((learner) => `${learner} ${EVENT}`), {
    name,
    receivedMs: Date.now(),
    payload: Buffer.from(
      JSON.stringify({
        boundary: `batch_${name}`,
        records: learners.map((learner, at) => ({ contentId: String(at + 1), learner, event: EVENT })),
      }),
    ),
    ...given,
  }) // prettier-ignore

interface Opened {
  readonly journal: DurableJournal
  readonly engine: ConsoleEngine
  /** Does background work until no work is left. */
  readonly work: () => Promise<void>
}

async function open(url: string, unsealing = how): Promise<Opened> {
  const journal = await openJournal({ url, keys })
  const failures: unknown[] = []
  const onFailure = (cause: unknown): void => void failures.push(cause)
  const engine = await openConsoleEngine({ url, how: unsealing, readRequest, begin, onFailure })
  onTestFinished(async () => {
    await engine.close()
    await journal.close()
  })
  const work = async (): Promise<void> => {
    while (await engine.work());
    expect(failures).toEqual([])
  }
  return { journal, engine, work }
}

/** Replaces an engine by a new engine, whose first pass sweeps the index and checks the balances. */
async function reopen(url: string, engine: ConsoleEngine): Promise<ConsoleEngine> {
  await engine.close()
  const { db, close } = await openConsoleDatabase(url)
  await sql`update console_index set until_ms = 0`.execute(db)
  await close()
  const again = await openConsoleEngine({ url, how, readRequest, begin, onFailure: () => undefined })
  onTestFinished(() => again.close())
  while (await again.work());
  return again
}

const recordsOf = (found: SearchResult): readonly RecordRow[] => (found.kind === 'records' ? found.records : [])
const placesOf = (found: SearchResult): readonly string[] =>
  recordsOf(found).map(({ batch, position }) => `${batch}.${position}`)
const numbersOf = (found: SearchResult): readonly number[] =>
  found.kind === 'batches' ? found.batches.map(({ batch }) => batch) : []

/**
 * Fills the journal. Batch 1 has two confirmed records, one of them with a known mark. Batch 2 has a refused and a parked record. Batch 3
 * of another partner is in flight. V2 served batch 4.
 */
async function fill(journal: Journal): Promise<void> {
  await beginNew(journal, registerOf('one', [LEARNER, OTHER]))
  await journal.settle(1, [
    { ...confirmed(0), mark: { externalId: MARK, recordedMs: 1 } },
    { ...confirmed(1), mark: { externalId: guid(5), recordedMs: 1 } },
  ])
  await beginNew(journal, registerOf('two', [OTHER, LEARNER]))
  await journal.settle(2, [
    { position: 0, state: 'refused', answer: '400', reason: 'ATT_VAL_2', deadLetter: true },
    { position: 1, state: 'parked', answer: '200', reason: 'timeout', retry: LATER_MS },
  ])
  await beginNew(journal, registerOf('three', [guid(7)], { partner: 'other' }))
  await beginNew(journal, registerOf('four', [guid(8)], { side: 'v2', payload: Buffer.alloc(0) }))
  await journal.settle(4, [confirmed(0)])
}

describe.each(eachDatabase())('the index of the console over a journal in %s', (name, { test }) => {
  test('counts marks by the minute of receipt and the current state', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    const total = async (...scope: readonly string[]) => {
      const { traffic } = await engine.overview('hour', scope)
      return Object.fromEntries(traffic.marks.map(({ name: state, counts }) => [state, counts.reduce((sum, n) => sum + n)]))
    } // prettier-ignore
    expect(await total('acme')).toEqual({ confirmed: 3, refused: 1, parked: 1 })
    expect(await total('other')).toEqual({ open: 1 })

    await journal.settle(3, [{ position: 0, state: 'unknown', answer: '504', reason: 'timeout', retry: LATER_MS }])
    await journal.reopen(2, [1], undefined)
    await journal.settle(2, [confirmed(1)])
    await work()
    expect(await total('acme', 'other')).toEqual({ confirmed: 4, refused: 1, unknown: 1 })
    for (const range of ['live', 'day', 'week'] as const)
      expect((await engine.overview(range, ['other'])).traffic.marks.map(({ name: state }) => state)).toContain('unknown')
  })

  test('checks the totals of each partner against the stored records, and lists the instances', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    const { balances, instances, index } = await engine.overview('live', 'all')
    expect(balances).toMatchObject([
      { partner: 'acme', received: 5, confirmed: 3, refused: 1, parked: 1, open: 0, unknown: 0, holds: true, deadLetters: 1 },
      { partner: 'other', received: 1, open: 1, holds: true, deadLetters: 0 },
    ]) // prettier-ignore
    expect(instances).toMatchObject([{ instance: journal.lease(), state: 'live', openBatches: 1 }])
    expect(index).toEqual({ waiting: 1, lostSteps: 0, unreadable: [{ reason: 'onV2', batches: 1 }] })
    expect((await engine.overview('live', ['other'])).balances.map(({ partner }) => partner)).toEqual(['other'])
  })

  test('detects totals that contradict the records', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    const store = openStore(url, { timeoutMs: 10_000, wallMs: Date.now })
    await sql`update journal_batches set confirmed = 9 where id = 1`.execute(store.db)
    await store.close()
    const again = await reopen(url, engine)
    expect((await again.overview('live', 'all')).balances.map(({ holds }) => holds)).toEqual([false, true])
  })

  test('finds records and batches by each search field, but only of partners that the person may see', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    const hashOf = async (kind: 'learner' | 'event' | 'mark', id: string) => (await engine.hash(kind, id)) ?? ''
    const learner = await hashOf('learner', ` {${LEARNER.toUpperCase()}} `)
    const event = await hashOf('event', EVENT)
    expect(learner).toMatch(/^[0-9a-f]{13}$/)
    expect(await engine.hash('learner', 'no guid')).toBeUndefined()
    const find = async (search: Parameters<ConsoleEngine['search']>[0], scope: 'all' | readonly string[] = 'all') => {
      const found = await engine.search(search, scope)
      return found.kind === 'records' ? placesOf(found) : numbersOf(found)
    } // prettier-ignore
    expect(await find({ learner })).toEqual(['2.1', '1.0'])
    expect(await find({ learner, event, contentId: '1' })).toEqual(['1.0'])
    expect(await find({ event, state: 'refused' })).toEqual(['2.0'])
    expect(await find({ event, contentId: '2' })).toEqual(['2.1', '1.1'])
    expect(await find({ contentId: '2', boundary: 'batch_two' })).toEqual(['2.1'])
    expect(await find({ contentId: '2', batch: 1 })).toEqual(['1.1'])
    expect(await find({ contentId: '2' })).toEqual(['2.1', '1.1'])
    expect(await find({ mark: await hashOf('mark', MARK.toUpperCase()) })).toEqual(['1.0'])
    expect(await find({ mark: learner })).toEqual([])
    expect(await find({ boundary: 'batch_one' })).toEqual([1])
    expect(await find({ batch: 4 })).toEqual([4])
    expect(await find({})).toEqual([4, 3, 2, 1])
    expect(await find({ state: 'open' })).toEqual([3])
    expect(await find({ partner: 'other' })).toEqual([3])
    expect(await find({}, ['other'])).toEqual([3])
    expect(await find({ learner }, ['other'])).toEqual([])
    expect(await find({}, [])).toEqual([])
    expect(await find({ fromMs: Date.now() - 60_000, untilMs: Date.now() + 60_000, partner: 'acme' })).toEqual([4, 2, 1]) // prettier-ignore
    expect(await find({ untilMs: 1 })).toEqual([])

    const first = await engine.search({ limit: 3 }, 'all')
    expect([numbersOf(first), await find({ limit: 3, after: first.next })]).toEqual([[4, 3, 2], [1]])
    const second = await engine.search({ learner, limit: 1 }, 'all')
    expect([placesOf(second), await find({ learner, limit: 1, after: second.next })]).toEqual([['2.1'], ['1.0']])
  })

  test('ignores invalid search parameters, which no page creates', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    for (const after of ['x.y', '1e400.1', '99999999999999999999.1', '1.99999999999', '1'])
      expect(numbersOf(await engine.search({ after }, 'all'))).toEqual([4, 3, 2, 1])
    expect(await engine.records(1, { from: 999_999_999_999_998 })).toEqual({ records: [], next: undefined })
  })

  test('finds a mark that was confirmed after its batch was indexed', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    await journal.reopen(2, [1], undefined)
    await journal.settle(2, [{ ...confirmed(1), mark: { externalId: guid(6), recordedMs: 1 } }])
    const again = await reopen(url, engine)
    const mark = await again.hash('mark', guid(6))
    expect(placesOf(await again.search({ mark }, 'all'))).toEqual(['2.1'])
  })

  test('returns a batch and its records in pages', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    const learners = Array.from({ length: 1_500 }, (_, at) => guid(100 + at))
    const large = await beginNew(journal, registerOf('large', learners))
    await journal.settle(large, learners.map((_, at): Settled => confirmed(at))) // prettier-ignore
    await work()
    expect(await engine.batch(2, 'all')).toEqual({
      ...{ batch: 2, partner: 'acme', receivedMs: expect.any(Number) as number, boundary: 'batch_two', servedBy: 'v3' },
      ...{ records: 2, states: { open: 0, confirmed: 0, refused: 1, unknown: 0, parked: 1, notApplied: 0 }, deadLetters: 1 },
      ...{ instance: journal.lease(), answered: false, hasRequest: true, unreadable: undefined, timeline: [] },
    })
    expect(await engine.batch(4, 'all')).toMatchObject({ servedBy: 'v2', hasRequest: false, unreadable: 'onV2' })
    expect([await engine.batch(2, ['other']), await engine.batch(99, 'all')]).toEqual([undefined, undefined])
    expect((await engine.records(2, {})).records).toMatchObject([
      { position: 0, contentId: '1', state: 'refused', reason: 'ATT_VAL_2', deadLetter: true, remedy: expect.any(String) as string },
      { position: 1, contentId: '2', state: 'parked', retry: LATER_MS, attempts: 1, instance: journal.lease() },
    ]) // prettier-ignore
    const page = await engine.records(large, { from: 990, limit: 20 })
    expect([page.records.length, page.records[0]?.contentId, page.next]).toEqual([20, '991', 1_010])
    expect((await engine.records(large, { from: 1_490 })).next).toBeUndefined()
    expect((await engine.records(2, { state: 'parked' })).records.map(({ position }) => position)).toEqual([1])
  })

  test('reports how long PostgreSQL has worked on the queries of the index', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    expect(engine.servedMs() > 0).toBe(name === 'PostgreSQL')
  })

  test('returns the decrypted request of a batch, or the reason why the request cannot be decrypted', async (url) => {
    const { journal, engine } = await open(url)
    await fill(journal)
    const opened = await engine.readKept(1, 0)
    expect(opened).toMatchObject({ partner: 'acme', receivedMs: expect.any(Number) as number })
    expect(typeof opened === 'object' && Buffer.from(opened.payload).toString()).toContain('batch_one')
    expect([await engine.readKept(4, 0), await engine.readKept(99, 0)]).toEqual(['onV2', undefined])
  })

  test('groups by reason the dead letters and the records that are retried', async (url) => {
    const { journal, engine } = await open(url)
    await fill(journal)
    const letters = await engine.waiting({ kind: 'deadLetters' }, 'all')
    expect(letters).toMatchObject({ records: [{ batch: 2, position: 0 }], reasons: [{ reason: 'ATT_VAL_2', state: 'refused', records: 1 }] }) // prettier-ignore
    const parked = await engine.waiting({ kind: 'parked', reason: 'timeout' }, ['acme'])
    expect(parked).toMatchObject({ records: [{ batch: 2, position: 1 }], next: undefined })
    expect((await engine.waiting({ kind: 'parked', after: '2.1' }, 'all')).records).toEqual([])
    expect((await engine.waiting({ kind: 'parked' }, ['other'])).records).toEqual([])
    await journal.settle(3, [{ position: 0, state: 'notApplied', answer: '503', reason: 'unavailable', retry: 'resend' }])
    expect(await engine.waiting({ kind: 'notApplied' }, 'all')).toMatchObject({
      records: [{ batch: 3, position: 0, retry: 'resend' }],
      reasons: [{ reason: 'unavailable', state: 'notApplied', records: 1 }],
    })
    expect((await engine.waiting({ kind: 'notApplied' }, ['acme'])).reasons).toEqual([])
  })

  test('stores the retries and read-backs of a record in the timeline of its batch, and counts repetitions', async (url) => {
    const { journal, engine, work } = await open(url)
    const queue = createStepQueue(Date.now)
    const observed = observeJournal(journal, queue)
    await fill(observed)
    const again = await observed.begin(registerOf('one', [LEARNER, OTHER]))
    await observed.knownMarks({ batch: 2, position: 1 })
    await observed.reopen(2, [1], undefined)
    await observed.settle(2, [confirmed(1)])
    expect([again.kind, observed.durable, observed.lease()]).toEqual(['known', true, journal.lease()])
    const { steps, lost } = queue.take()
    await engine.keepSteps(steps, lost + 3)
    await work()
    const stepsOf = async (batch: number) =>
      (await engine.batch(batch, 'all'))?.timeline.map(({ kind, positions, reason }) => [kind, positions, reason])
    expect(await stepsOf(1)).toEqual([['replayed', [], undefined]])
    const sorted = (await stepsOf(2))?.toSorted()
    expect(sorted).toEqual([
      ['parked', [[1, 1]], 'timeout'],
      ['readBack', [[1, 1]], undefined],
      ['recovered', [[1, 1]], undefined],
      ['retried', [[1, 1]], undefined],
    ])
    expect((await engine.overview('live', 'all')).index.lostSteps).toBe(3)
    await engine.keepSteps(steps.map((step) => ({ ...step, atMs: step.atMs + 5_000 })), 0) // prettier-ignore
    const [repeated] = (await engine.batch(1, 'all'))?.timeline ?? []
    expect(repeated).toMatchObject({ kind: 'replayed', times: 2, lastMs: (repeated?.atMs ?? 0) + 5_000 })
  })

  test('adds a step to the timeline of a batch when a newer mark supersedes one of its records', async (url) => {
    const { journal, engine, work } = await open(url)
    const resend = { state: 'notApplied', answer: '503', reason: 'timeout', retry: 'resend' } as const
    await beginNew(journal, registerOf('old', [LEARNER, OTHER]))
    await journal.settle(1, [{ position: 0, ...resend }, { position: 1, ...resend }]) // prettier-ignore
    await work()
    await beginNew(journal, registerOf('new', [OTHER]))
    await journal.settle(2, [confirmed(0)])
    await work()
    expect((await engine.batch(1, 'all'))?.timeline).toMatchObject([{ kind: 'superseded', positions: [[1, 1]] }])
  })

  test('adds up the figures of all instances', async (url) => {
    const { engine } = await open(url)
    const atMs = Date.now()
    await engine.keepFigures([{ name: 'v3 2xx', count: 90 }, { name: 'v3 none', count: 1 }, { name: 'v2 2xx', count: 7 }], atMs) // prettier-ignore
    await engine.keepFigures([{ name: 'reports', count: 1 }, { name: 'v3 2xx', count: 10 }], atMs)
    for (const range of ['live', 'hour', 'day', 'week'] as const) {
      const { traffic, reportedMs = 0 } = await engine.overview(range, 'all')
      const total = traffic.calls.map(({ name: status, counts }) => [status, counts.reduce((sum, n) => sum + n)])
      expect(Object.fromEntries(total)).toEqual({ '2xx': 100, none: 1 })
      expect(Math.abs(reportedMs - atMs)).toBeLessThanOrEqual(10_000)
    }
  })

  test('reports current failures with their beginning, and waiting records, but only of partners that the person may see', async (url) => {
    const { journal, engine } = await open(url)
    const troubleOf = async (scope: 'all' | readonly string[] = 'all') =>
      (await engine.overview('live', scope)).trouble.map(({ kind, partner, count }) => [kind, partner, count])
    expect(await troubleOf()).toEqual([])
    await fill(journal)
    expect((await troubleOf()).sort()).toEqual([['deadLetters', 'acme', 1], ['parked', 'acme', 1]])
    await beginNew(journal, registerOf('five', [guid(9)], { partner: 'other' }))
    await journal.settle(5, [{ position: 0, state: 'notApplied', answer: '503', reason: 'unavailable', retry: 'resend' }])
    expect(await troubleOf(['other'])).toEqual([['notApplied', 'other', 1]])
    // The middle of an interval of 10 s, so that each figure falls into the interval for which it is meant.
    const nowMs = Math.floor(Date.now() / 10_000) * 10_000 + 5_000
    const startOf = (ago: number) => nowMs - ago * 10_000 - 5_000
    const figures = (name: string, count: number, ago: number) => engine.keepFigures([{ name, count }], nowMs - ago * 10_000)
    await figures('v3 5xx', 9, 5)
    await figures('v3 2xx', 90, 5)
    for (const ago of [4, 2]) await figures('v3 none', 20, ago)
    await figures('denied acme', 3, 4)
    await figures('ownDenied other', 2, 50)
    const { trouble, traffic } = await engine.overview('live', 'all')
    expect(trouble.slice(0, 2)).toEqual([
      { kind: 'v3Fails', partner: undefined, count: 40, sinceMs: startOf(4) },
      { kind: 'denied', partner: 'acme', count: 3, sinceMs: startOf(4) },
    ])
    expect(traffic.outages).toEqual([{ fromMs: startOf(4), untilMs: startOf(1) }])
    // A successful call in the latest interval ends `v3Fails`, but `denied` lasts until V3 accepts credentials of the partner.
    await figures('v3 2xx', 90, 1)
    expect((await troubleOf()).map(([kind]) => kind)).not.toContain('v3Fails')
    expect((await troubleOf(['acme'])).map(([kind]) => kind)).toContain('denied')
    await figures('accepted acme', 1, 1)
    expect((await troubleOf(['acme'])).map(([kind]) => kind)).not.toContain('denied')
    await figures('v3 429', 60, 0)
    await figures('v2 5xx', 1, 0)
    expect((await troubleOf()).slice(0, 2)).toEqual([['v3Throttles', undefined, 60], ['v2Fails', undefined, 1]])
  }) // prettier-ignore

  test('finds the beginning of a failure that began before the range of the overview', async (url) => {
    const { engine } = await open(url)
    const nowMs = Date.now()
    for (let ago = 0; ago < 40; ago += 1) await engine.keepFigures([{ name: 'v3 5xx', count: 2 }], nowMs - ago * 60_000)
    const { trouble } = await engine.overview('live', 'all')
    expect(trouble).toEqual([
      { kind: 'v3Fails', partner: undefined, count: 80, sinceMs: Math.floor(nowMs / 60_000 - 39) * 60_000 },
    ])
  })

  test('counts by reason the batches that it cannot read', async (url) => {
    const { journal, engine, work } = await open(url, { keys: [], plaintextAccepted: false })
    await beginNew(journal, registerOf('one', [LEARNER]))
    await journal.settle(1, [{ ...confirmed(0), mark: { externalId: MARK, recordedMs: 1 } }])
    await work()
    expect((await engine.overview('live', 'all')).index.unreadable).toEqual([{ reason: 'key', batches: 1 }])
    const mark = await engine.hash('mark', MARK)
    expect(placesOf(await engine.search({ mark }, 'all'))).toEqual(['1.0'])
    await expect(engine.hash('learner', LEARNER)).rejects.toMatchObject({ code: 'ADP_CONFIGURATION' })
  })

  test('skips a request that cannot be decoded, and indexes the next batch', async (url) => {
    const { journal, engine, work } = await open(url)
    await beginNew(journal, registerOf('one', [LEARNER], { payload: Buffer.from('?') }))
    await journal.settle(1, [confirmed(0)])
    await beginNew(journal, registerOf('two', [LEARNER]))
    await journal.settle(2, [confirmed(0)])
    await work()
    expect((await engine.overview('live', 'all')).index).toMatchObject({ waiting: 0, unreadable: [{ reason: 'damaged', batches: 1 }] }) // prettier-ignore
    expect(placesOf(await engine.search({ contentId: '1' }, 'all'))).toEqual(['2.0'])
  })

  test('deletes its data about batches that the journal has deleted', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    await work()
    const learner = await engine.hash('learner', LEARNER)
    const inspector = await openInspector(url)
    onTestFinished(() => inspector.close())
    // A search must not find erased data, even before the background work deletes it from the index.
    await inspector.erase(how, { request: (bytes) => Buffer.from(bytes).includes(guid(7)) || Buffer.from(bytes).includes(OTHER), reply: () => false }) // prettier-ignore
    expect(placesOf(await engine.search({ learner }, 'all'))).toEqual(['2.1'])
    const { db, close } = await openConsoleDatabase(url)
    onTestFinished(close)
    const hashesOf = async () =>
      (await sql<{ batch: number }>`select batch from console_records where learner is not null order by batch, position`.execute(db)).rows.map(({ batch }) => batch) // prettier-ignore
    expect(await hashesOf()).toEqual([1, 1, 2, 2])
    expect(await eraseFromConsole(url)).toBe(true)
    expect(await hashesOf()).toEqual([2, 2])
    await sql`update journal_meta set value = '60000' where name = 'age'`.execute(journal.database.db)
    await inspector.purge({ replayForMs: 1, keepRecordsMs: 1 }, Date.now() + 1_000)
    expect(await eraseFromConsole(url)).toBe(true)
    expect(numbersOf(await engine.search({}, 'all'))).toEqual([3, 2])
    const kept = await sql<{ batch: number }>`select batch from console_batches order by batch`.execute(db)
    expect(kept.rows.map(({ batch }) => batch)).toEqual([2, 3])
  })

  test('counts the records of a batch with rejected credentials only in the balance', async (url) => {
    const { journal, engine, work } = await open(url)
    await beginNew(journal, registerOf('one', [LEARNER, OTHER]))
    await work()
    await journal.forget(1, 2, journal.lease() ?? 0)
    await work()
    const { traffic, balances } = await engine.overview('live', 'all')
    expect(traffic.marks).toEqual([])
    expect(balances).toMatchObject([{ refused: 2, open: 0, received: 2 }])
  })

  test('is written by one instance at a time, and is the same on every instance', async (url) => {
    const { journal, engine, work } = await open(url)
    await fill(journal)
    const other = await openConsoleEngine({ url, how, readRequest, begin, onFailure: () => undefined })
    onTestFinished(() => other.close())
    await work()
    expect(await other.work()).toBe(false)
    const search = { learner: await other.hash('learner', LEARNER) }
    expect(await other.search(search, 'all')).toEqual(await engine.search(search, 'all'))
    expect((await other.overview('hour', 'all')).traffic).toEqual((await engine.overview('hour', 'all')).traffic)
  })

  test('contains no personal data', async (url) => {
    const { journal, work } = await open(url)
    await fill(journal)
    await work()
    const { db, close } = await openConsoleDatabase(url)
    onTestFinished(close)
    for (const name of ['batches', 'records', 'steps', 'counts']) {
      const { rows } = await sql`select * from ${sql.table(`console_${name}`)}`.execute(db)
      const text = JSON.stringify(rows)
      for (const value of [LEARNER, OTHER, EVENT, MARK]) expect(text).not.toContain(value)
    }
  })
})
