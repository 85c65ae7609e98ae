import { setImmediate as nextTurn } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { guid } from '../../bench/legacy-batch.ts'
import { readRequest } from '../../src/app/console/read-request.ts'
import { openConsoleEngine } from '../../src/console/data/engine.ts'
import type { Search } from '../../src/console/data/port.ts'
import { fillJournal, fillKey } from './fill.ts'

// Fills a journal, indexes it and measures each page in one process: node test/console/measure.ts --journal sqlite:/tmp/j/journal.db

const ROUNDS = 20
const DAY_MS = 86_400_000

const { values } = parseArgs({ options: { journal: { type: 'string' }, records: { type: 'string' } } })
const { journal: url = '', records = '1000000' } = values
const print = (what: string, value: object): void => console.log(`${what.padEnd(44)}${JSON.stringify(value)}`)

const filledMs = performance.now()
const filled = await fillJournal({ url, records: Number(records), settled: false })
print('filled', { ...filled, seconds: Math.round((performance.now() - filledMs) / 1_000) })

const how = { keys: [fillKey], plaintextAccepted: false }
const engine = await openConsoleEngine({
  url,
  how,
  readRequest,
  begin: nextTurn,
  onFailure: (cause) => console.error(cause),
})
const [before, startMs] = [process.cpuUsage(), performance.now()]
while (await engine.work());
const { user, system } = process.cpuUsage(before)
print('indexed', {
  cpuMicrosPerMark: Math.round(((user + system) / filled.records) * 10) / 10,
  seconds: Math.round((performance.now() - startMs) / 1_000),
})
const idle = process.cpuUsage()
for (let pass = 0; pass < ROUNDS; pass += 1) await engine.work()
const { user: idleUser, system: idleSystem } = process.cpuUsage(idle)
print('a pass without news', { cpuMs: Math.round((idleUser + idleSystem) / ROUNDS / 100) / 10 })

/** Measures a query in several rounds. Prints the first round separately, because the caches of this process are then empty. */
async function time(what: string, ask: (round: number) => Promise<unknown>): Promise<void> {
  const times: number[] = []
  let rows: unknown
  for (let round = 0; round < ROUNDS; round += 1) {
    const sinceMs = performance.now()
    rows = await ask(round)
    times.push(performance.now() - sinceMs)
  }
  const [first = 0] = times
  const sorted = times.toSorted((one, other) => one - other)
  const round = (ms = 0): number => Math.round(ms * 10) / 10
  print(what, { ms: { p50: round(sorted[ROUNDS / 2]), max: round(sorted.at(-1)), first: round(first) }, ...countOf(rows) }) // prettier-ignore
}

function countOf(rows: unknown): object {
  if (typeof rows !== 'object' || rows === null) return {}
  if ('records' in rows && Array.isArray(rows.records)) return { rows: rows.records.length }
  return 'batches' in rows && Array.isArray(rows.batches) ? { rows: rows.batches.length } : {}
}

for (const range of ['live', 'hour', 'day', 'week'] as const)
  await time(`overview ${range}`, () => engine.overview(range, 'all'))
const search = (what: string, of: (round: number) => Search | Promise<Search>): Promise<void> =>
  time(`search ${what}`, async (round) => engine.search(await of(round), 'all'))
const spread = (round: number): number => 1 + Math.floor((filled.batches * (round + 0.5)) / ROUNDS)
await search('newest batches', () => ({}))
await search('batch id', (round) => ({ batch: spread(round) }))
await search('client’s batch id', (round) => ({ boundary: `batch_${guid(8, spread(round))}` }))
await search('Content-ID (in every batch)', (round) => ({ contentId: String(1 + round) }))
await search('Content-ID (rare)', (round) => ({ contentId: String(19_000 + round) }))
await search('Content-ID and batch', (round) => ({ contentId: String(19_000 + round), batch: filled.large }))
await search('Content-ID, unknown', (round) => ({ contentId: String(1 + round), state: 'unknown' }))
await search('learner', async (round) => ({
  learner: await engine.hash('learner', guid(1, 100 + round * 997)),
}))
await search('event', async (round) => ({ event: await engine.hash('event', guid(2, round % 2)) }))
await search('mark', async (round) => ({ mark: await engine.hash('mark', guid(4, 1_000 + round * 997)) }))
await search('time (an hour)', (round) => {
  const fromMs = Date.now() - 6 * DAY_MS + round * 3_600_000
  return { fromMs, untilMs: fromMs + 3_600_000 }
})
await search('time and partner', (round) => ({ fromMs: Date.now() - 5 * DAY_MS, untilMs: Date.now() - round * 3_600_000, partner: 'acme' })) // prettier-ignore
await search('outcome unknown', () => ({ state: 'unknown' }))
await search('outcome parked, a day', (round) => ({
  state: 'parked',
  untilMs: Date.now() - round * 3_600_000,
}))
await search('outcome refused, partner', () => ({ state: 'refused', partner: 'dover' }))
await search('Content-ID, old day', (round) => ({ contentId: String(1 + round), untilMs: Date.now() - 6 * DAY_MS })) // prettier-ignore
await time('batch of 20,000: head', () => engine.batch(filled.large, 'all'))
await time('batch of 20,000: page of 100', (round) => engine.records(filled.large, { from: round * 995 }))
await time('batch of 20,000: page of 1,000', (round) => engine.records(filled.large, { from: round * 950, limit: 1_000 })) // prettier-ignore
await time('batch of 20,000: unknown ones', () => engine.records(filled.large, { state: 'unknown' }))
await time('dead letters', () => engine.waiting({ kind: 'deadLetters' }, 'all'))
await time('parked', () => engine.waiting({ kind: 'parked' }, ['acme']))
await engine.close()
