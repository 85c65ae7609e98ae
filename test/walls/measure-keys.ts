import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { type Journal, openJournal, type Settled } from '../../src/journal/index.ts'
import { batchOf } from '../journal/batches.ts'
import { missingPostgres, startPostgres } from '../support/start-postgres.ts'

/** The default of `maxParts` in the configuration. */
const RECORDS = 20_000

/** The cost of a batch of many records, and the delays of other writes meanwhile. */
interface Cost {
  readonly beginMs: number
  readonly settleMs: number
  readonly grownMiB: number
  /** The 99th percentile of the time from `begin` to `settle` of another partner's write while the large batch was made durable. */
  readonly othersMs: number
}

type Outcome = (position: number) => Settled

const outcomes: readonly (readonly [name: string, side: 'v2' | undefined, of: Outcome])[] = [
  ['confirmed', undefined, (position) => ({ position, state: 'confirmed', answer: 'x'.repeat(500) })],
  ['lost by V2', 'v2', (position) => ({ position, state: 'unknown', answer: undefined, retry: 'resend' })],
  [
    'parked, the last confirmed',
    undefined,
    (position) =>
      position === RECORDS - 1
        ? { position, state: 'confirmed', answer: undefined }
        : { position, state: 'parked', answer: undefined, retry: 5 },
  ],
]

async function writeSmall(journal: Journal, name: string): Promise<void> {
  const begun = await journal.begin(batchOf([name], { partner: 'other', owner: 'other' }))
  await journal.settle(begun.batch, [{ position: 0, state: 'confirmed', answer: 'yes' }])
}

async function measure(
  journal: Journal,
  keys: number,
  side: 'v2' | undefined,
  outcome: Outcome,
): Promise<Cost> {
  const run = String(performance.now())
  const names = Array.from({ length: RECORDS }, (_, position) => `${run} ${position % keys}`)
  const waits: number[] = []
  const state = { isOver: false }
  const others = (async () => {
    while (!state.isOver) {
      const from = performance.now()
      await writeSmall(journal, `${run} other ${waits.length}`)
      waits.push(performance.now() - from)
    }
  })()
  globalThis.gc?.()
  const before = process.memoryUsage.rss()
  let peak = before
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5)
  const from = performance.now()
  const begun = await journal.begin(batchOf(names, { side, payload: Buffer.alloc(1_000_000) }))
  const between = performance.now()
  await journal.settle(
    begun.batch,
    names.map((_, position) => outcome(position)),
  )
  const end = performance.now()
  clearInterval(watch)
  // Other writes continue for 100 ms, because delays after the large batch count too.
  await new Promise((resolve) => setTimeout(resolve, 100))
  state.isOver = true
  await others
  waits.sort((one, other) => one - other)
  return {
    beginMs: between - from,
    settleMs: end - between,
    grownMiB: (peak - before) / 1_048_576,
    othersMs: waits[Math.floor(waits.length * 0.99)] ?? NaN,
  }
}

async function measureStore(store: string, url: string): Promise<void> {
  const journal = await openJournal({ url })
  await measure(journal, RECORDS, undefined, (position) => ({ position, state: 'confirmed', answer: 'x' }))
  for (const [name, side, outcome] of outcomes) {
    for (const keys of [1, 10, RECORDS]) {
      const cost = await measure(journal, keys, side, outcome)
      const figures = [cost.beginMs, cost.settleMs, cost.grownMiB, cost.othersMs].map((n) =>
        n.toFixed(0).padStart(7),
      )
      console.log(`${store.padEnd(11)} ${name.padEnd(27)} ${String(keys).padStart(6)} ${figures.join(' ')}`)
    }
  }
  await journal.close()
}

/**
 * Prints the cost of batches with one key, with ten keys and with one key per record on both databases. Batches with few keys must not cost
 * more.
 */
export async function printKeys(): Promise<boolean> {
  console.log(
    `${RECORDS} records          outcome                       keys begin ms settle MiB others' p99 ms`,
  )
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-keys-'))
  await measureStore('SQLite', `sqlite:${join(folder, 'journal.db')}`)
  await rm(folder, { recursive: true })
  const missing = missingPostgres()
  if (missing !== undefined) console.log(missing)
  else {
    const postgres = await startPostgres()
    await measureStore('PostgreSQL', await postgres.createDatabase())
    await postgres.close()
  }
  return true
}
