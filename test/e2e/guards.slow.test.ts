import { expect, it } from 'vitest'

import { type OpenedRolloutStore, openRolloutStore } from '../../src/rollout/index.ts'
import type { AuditEntry } from '../../src/rollout/store/rollout-store.ts'
import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { journalFile } from './support/journal-file.ts'

const path = '/x/V2/Attendance/AttendanceRecords'
const schools = Array.from({ length: 20 }, (_, index) => `school ${index}`)

/** An adapter at `canary` in front of a service with both faces, whose day goes by as the test says. */
async function startCanary(guards: object = {}) {
  const sandbox = await startSandbox({ now: new Date().toISOString() })
  const { body } = await sandbox.json('GET', '/_sandbox/samples')
  const { learners, events, codes } = body as {
    learners: string[]
    events: string[]
    codes: { id: string }[]
  }
  let passedMs = 0
  const partner = {
    id: 'acme',
    match: { any: true },
    stage: 'canary',
    canary: { percent: 0, header: 'x-school', always: schools.slice(0, 8) },
    v2: { baseUrl: sandbox.url },
    v3: { readBackAfterMs: [], budgetMs: 5_000 },
  }
  const journal = journalFile()
  const adapter = await startAdapter(
    sandbox.url,
    { journal, partners: [partner], rollout: { guards } },
    { nowMs: () => Date.now() + passedMs },
  )
  let written = 0
  const write = async (school: string, isKnown: boolean): Promise<string> => {
    const mark = {
      Present: true,
      Absent: false,
      Learner: learners[written % learners.length],
      AttendableEvent: isKnown
        ? events[Math.floor(written / learners.length) % events.length]
        : '00000000-0000-4000-8000-000000000000',
      SchoolAttendanceCode: codes[0]?.id,
    }
    written += 1
    const headers = { ...sandboxHeaders, 'Content-Type': 'application/json', 'x-school': school }
    const { status } = await adapter.request('POST', path, { headers, body: JSON.stringify(mark) })
    return `${school}: ${status}`
  }
  return {
    sandbox,
    adapter,
    store: () => openRolloutStore({ url: journal.url }),
    /** Each school writes once, the faulty one for an event that there is not; then ten seconds pass. */
    writeAll: async (faulty?: string): Promise<string[]> => {
      const answers = await Promise.all(schools.map((school) => write(school, school !== faulty)))
      passedMs += 10_000
      return answers
    },
    setFaults: async (faults: object) => {
      const { status } = await sandbox.json('PUT', '/_sandbox/faults', {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(faults),
      })
      expect(status).toBeLessThan(300)
    },
  }
}

async function historyOf(open: () => Promise<OpenedRolloutStore>): Promise<readonly AuditEntry[]> {
  const store = await open()
  return store.history({ partner: 'acme' }).finally(() => store.close())
}

const actsOf = (adapter: Adapter): unknown[] => adapter.events().filter(({ msg }) => msg === 'guard acted')

it('a V3 that fails is left by itself: the partner goes back to V2, once, and why is in the audit trail', async () => {
  const { adapter, store, writeAll, setFaults } = await startCanary()
  for (let window = 0; window < 3; window++)
    expect((await writeAll()).filter((answer) => !answer.endsWith('201'))).toEqual([])
  await setFaults({ kind: 'status', status: 500, face: 'V3', method: 'POST' })
  let windows = 0
  while (actsOf(adapter).length === 0 && windows < 40) {
    await writeAll()
    windows += 1
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  expect(actsOf(adapter)).toMatchObject([
    { partner: 'acme', action: 'back', kind: 'unknown', test: 'control' },
  ])
  await expect.poll(async () => (await writeAll()).filter((answer) => !answer.endsWith('201'))).toEqual([])
  const history = await historyOf(store)
  expect(history).toMatchObject([
    { action: 'guard', by: 'guard', from: { stage: 'canary' }, to: { stage: 'shadow' } },
  ])
  expect(history[0]?.reason).toContain('unknown outcomes than V2 at the same time')
})

it('a single school whose marks are refused holds its partner, by name, and nobody goes back', async () => {
  const { adapter, store, writeAll } = await startCanary()
  for (let window = 0; actsOf(adapter).length === 0 && window < 200; window++) await writeAll('school 3')
  expect(actsOf(adapter)).toMatchObject([
    { partner: 'acme', action: 'hold', kind: 'refused', test: 'units', heldBecause: 'singleUnit' },
  ])
  expect(adapter.log.join()).not.toContain('school 3')
  const history = await historyOf(store)
  expect(history).toMatchObject([{ action: 'hold', by: 'guard' }])
  expect(history[0]?.reason).toContain('School school 3 has far more refused records on V3 than all others')
})
