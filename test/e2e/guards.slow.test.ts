import { expect, it } from 'vitest'

import type { AuditEntry } from '../../src/rollout/store/audit-trail.ts'
import { type OpenedRolloutStore, openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, type BatchText, postBatch } from '../support/batch-request.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const schools = Array.from({ length: 20 }, (_, index) => `school ${index}`)

/** Starts an adapter at `canary` in front of a sandbox with both interfaces. Each call of `writeAll` moves the adapter's clock by 10 s. */
async function startCanary({ onV3 = 8 } = {}) {
  const sandbox = await startSandbox({ now: new Date().toISOString() })
  const { learners, events, codes } = await sandbox.samples()
  let passedMs = 0
  const partner = {
    id: 'acme',
    match: { any: true },
    stage: 'canary',
    canary: { percent: 0, header: 'x-school', always: schools.slice(0, onV3) },
    v2: { baseUrl: sandbox.url },
    v3: { readBackAfterMs: [], budgetMs: 5_000 },
  }
  const journal = journalFile()
  const adapter = await startAdapter(
    sandbox.url,
    { journal, partners: [partner] },
    { nowMs: () => Date.now() + passedMs },
  )
  let written = 0
  const nextBatch = (): BatchText => {
    const event = events[Math.floor(written / learners.length) % events.length]
    const mark = {
      Present: true,
      Absent: false,
      Learner: learners[written % learners.length],
      AttendableEvent: event,
      SchoolAttendanceCode: codes[0]?.id,
    }
    written += 1
    return batchOf([mark], { batch: `batch_${written}`, changeset: `changeset_${written}` })
  }
  /** The batch that each school resends, because it was not applied or its outcome is unknown. */
  const failed = new Map<string, BatchText>()
  const write = async (school: string): Promise<string> => {
    const batch = failed.get(school) ?? nextBatch()
    const { text } = await postBatch(adapter, batch, { ...sandboxHeaders, 'x-school': school })
    const status = /HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 'none'
    if (status < '500') failed.delete(school)
    else failed.set(school, batch)
    return `${school}: ${status}`
  }
  return {
    sandbox,
    adapter,
    store: () => openRolloutStore({ url: journal.url }),
    writeAll: async (): Promise<string[]> => {
      const answers = await Promise.all(schools.map((school) => write(school)))
      passedMs += 10_000
      return answers
    },
    setFaults: async (faults: object) => {
      const { status } = await sandbox.put('faults', faults)
      expect(status).toBeLessThan(300)
    },
  }
}

async function historyOf(open: () => Promise<OpenedRolloutStore>): Promise<readonly AuditEntry[]> {
  const store = await open()
  return store.history({ partner: 'acme' }).finally(() => store.close())
}

const linesOf = (adapter: Adapter, message: string): unknown[] =>
  adapter.events().filter(({ msg }) => msg === message)
/** Waits 300 ms, in which the guards judge the windows that have ended. */
const aLook = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 300))

it.each([
  ['503 to everything and clients resend their batches', 503, 8, 12],
  ['503 to everything and serves a single school', 503, 1, 30],
  ['500 to everything', 500, 8, 12],
])('a guard sends a partner back to V2 within minutes when V3 answers %s', async (_, status, onV3, most) => {
  const { adapter, store, writeAll, setFaults } = await startCanary({ onV3 })
  for (let window = 0; window < 3; window++)
    expect((await writeAll()).filter((answer) => !answer.endsWith('201'))).toEqual([])
  await setFaults({ kind: 'status', status, face: 'V3', method: 'POST' })
  let windows = 0
  for (; linesOf(adapter, 'guard acted').length === 0 && windows < 40; windows++) {
    await writeAll()
    await aLook()
  }
  expect(linesOf(adapter, 'guard acted')).toMatchObject([{ partner: 'acme' }])
  expect(windows).toBeLessThanOrEqual(most)
  expect(linesOf(adapter, 'writes fail on V3')).toMatchObject([{ partner: 'acme', batches: 1 }])
  expect(adapter.log.find((line) => line.includes('writes fail on V3'))).toContain('"level":40')
  const history = await historyOf(store)
  expect(history).toMatchObject([
    { action: 'guard', by: 'guard', from: { stage: 'canary' }, to: { stage: 'shadow' } },
  ])
  const [, bad, all] = /(\d+) of (\d+) counted writes on V3 were bad/.exec(history[0]?.reason ?? '') ?? []
  expect(Number(all)).toBeGreaterThan(0)
  expect(bad).toBe(all)
  await setFaults([])
  await expect.poll(async () => (await writeAll()).filter((answer) => !answer.endsWith('201'))).toEqual([])
})
