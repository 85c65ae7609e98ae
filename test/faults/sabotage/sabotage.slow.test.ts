import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { runs } from '../../support/long-run.ts'
import { startAdapter } from '../../support/start-adapter.ts'
import { checkHistory, type Finding } from '../check/check-history.ts'
import { createSequence, type Load, startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { startFaultProxy } from '../proxy/fault-proxy.ts'
import { drawFaults } from '../proxy/fault.ts'
import { createForwardLog } from '../proxy/forwards.ts'
import {
  breakReplies,
  breakWrites,
  denyReplies,
  disguiseReads,
  type Exchange,
  type HttpAnswer,
  placeBetween,
  renderAnew,
  type Sabotage,
} from './broken-adapter.ts'

const RECORDS = 800
/** Where nothing is broken; `npm run test:faults` writes more. */
const SOUND = runs(300, RECORDS)

async function runUntil(load: Load, records: number): Promise<void> {
  await expect.poll(() => load.records() >= records, { timeout: 60_000, interval: 20 }).toBe(true)
  await load.stop()
  await load.sendOpen()
}

type Handler = (exchange: Exchange) => Promise<HttpAnswer>

interface BetweenOptions {
  readonly records?: number
  readonly replayShare?: number
  readonly journal?: string
  /** Share of the answers of the service that are lost. */
  readonly lostAnswers?: number
}

/** The URL of a journal in a folder of its own. */
function journalInFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-sabotage-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return `sqlite:${join(folder, 'journal.db')}`
}

/** Load through a real adapter and sandbox with a handler on either side of the adapter; what the checker found. */
async function findingsBetween(
  seed: number,
  handlers: { behind: Handler; before: Handler },
  { records = RECORDS, replayShare = 0, journal = 'none', lostAnswers = 0 }: BetweenOptions = {},
): Promise<{ findings: readonly Finding[]; load: Load }> {
  const sandbox = await startSandbox()
  const tick = createSequence()
  const log = createForwardLog(tick)
  const watched = await startFaultProxy({
    targets: [Number(new URL(sandbox.url).port)],
    onForward: log.onForward,
  })
  onTestFinished(() => watched.close())
  const behind = await placeBetween(watched.url, handlers.behind)
  onTestFinished(() => behind.close())
  const losing = await startFaultProxy({
    targets: [Number(new URL(behind.url).port)],
    plan: drawFaults(createRandom(seed, 'answers'), { resetAfter: lostAnswers }),
  })
  onTestFinished(() => losing.close())
  const partners = [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [20, 50] } }]
  const adapter = await startAdapter(losing.url, { journal: { url: journal }, partners })
  const before = await placeBetween(adapter.url, handlers.before)
  onTestFinished(() => before.close())
  const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as Samples
  const load = startLoad({ ...usualLoad, seed, url: before.url, samples, tick, impatience: 0, replayShare })
  onTestFinished(() => load.close())
  await runUntil(load, records)
  const effects = (await sandbox.json('GET', '/_sandbox/effects')).body as EffectEntry[]
  return { findings: checkHistory(load.history(), effects, { forwards: log.forwards() }).findings, load }
}

/** As often as asked, writes are dropped and doubled, and replies swapped. */
async function findingsWith(
  seed: number,
  shares: { writes: number; replies: number },
  records: number,
): Promise<{ sabotage: Sabotage; findings: readonly Finding[]; load: Load }> {
  const sabotage: Sabotage = { dropped: [], doubled: [], swapped: [] }
  const behind = breakWrites(seed, shares.writes, sabotage)
  const before = breakReplies(seed, shares.replies, sabotage)
  return { sabotage, ...(await findingsBetween(seed, { behind, before }, { records })) }
}

const passOn: Handler = ({ forward }) => forward()

function named(findings: readonly Finding[], kind: Finding['kind']): string[] {
  return findings.flatMap((finding) => (finding.kind === kind ? [finding.of] : [])).sort()
}

test('a sound adapter: not one finding, and every record has its final answer', async () => {
  const { findings, load } = await findingsWith(1, { writes: 0, replies: 0 }, SOUND)
  expect(findings).toEqual([])
  expect(load.history().writes.length).toBeGreaterThanOrEqual(SOUND)
})

test('an adapter that drops one record in 200, doubles one, and swaps answers: exactly those are found', async () => {
  const { sabotage, findings } = await findingsWith(2, { writes: 0.005, replies: 0.05 }, RECORDS)
  expect({
    lost: named(findings, 'lost'),
    doubled: named(findings, 'doubled'),
    falseAnswer: named(findings, 'falseAnswer'),
    others: findings.filter(({ kind }) => !['lost', 'doubled', 'falseAnswer'].includes(kind)),
  }).toEqual({
    lost: sabotage.dropped.toSorted(),
    doubled: sabotage.doubled.toSorted(),
    falseAnswer: sabotage.swapped.toSorted(),
    others: [],
  })
  // The run must have had something to find.
  expect(Object.values(sabotage).map((names: string[]) => names.length > 0)).toEqual([true, true, true])
})

test('an adapter that writes an answer anew when the batch comes again: changed replies', async () => {
  const handlers = { behind: passOn, before: renderAnew(3, 0.5) }
  const { findings } = await findingsBetween(3, handlers, {
    records: 300,
    replayShare: 0.5,
    journal: journalInFolder(),
  })
  expect(new Set(findings.map(({ kind }) => kind))).toEqual(new Set(['changedReply']))
})

test('an adapter that answers not applied after it has posted: false answers', async () => {
  const denied: string[] = []
  const handlers = { behind: passOn, before: denyReplies(4, 0.1, denied) }
  const { findings } = await findingsBetween(4, handlers, { records: 300, journal: journalInFolder() })
  expect(new Set(findings.map(({ kind, because }) => `${kind}: ${because}`))).toEqual(
    new Set(['falseAnswer: told not applied, but the service had it']),
  )
  expect(findings.map(({ of }) => of)).toEqual(expect.arrayContaining(denied))
})

test('an adapter that does not recognise its own mark when it reads it back: doubled records', async () => {
  const handlers = { behind: disguiseReads(), before: passOn }
  const { findings } = await findingsBetween(5, handlers, {
    records: 300,
    journal: journalInFolder(),
    lostAnswers: 0.1,
  })
  expect(named(findings, 'doubled').length).toBeGreaterThan(5)
})
