import { expect, onTestFinished, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import { startAdapter } from '../../support/start-adapter.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { checkHistory, type Finding } from '../check/check-history.ts'
import { type Load, startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { breakReplies, breakWrites, placeBetween, type Sabotage } from './broken-adapter.ts'

const RECORDS = 4_000

async function runUntil(load: Load, records: number): Promise<void> {
  await expect.poll(() => load.records() >= records, { timeout: 25_000, interval: 20 }).toBe(true)
  await load.stop()
  await load.sendOpen()
}

/** Load through a real adapter and sandbox, broken on both sides as often as asked; what the checker found. */
async function findingsWith(
  seed: number,
  shares: { writes: number; replies: number },
): Promise<{ sabotage: Sabotage; findings: readonly Finding[]; load: Load }> {
  const sabotage: Sabotage = { dropped: [], doubled: [], swapped: [] }
  const sandbox = await startSandbox()
  const behind = await placeBetween(sandbox.url, breakWrites(seed, shares.writes, sabotage))
  onTestFinished(() => behind.close())
  const adapter = await startAdapter(behind.url)
  const before = await placeBetween(adapter.url, breakReplies(seed, shares.replies, sabotage))
  onTestFinished(() => before.close())
  const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as Samples
  const load = startLoad({ ...usualLoad, seed, url: before.url, samples, impatience: 0, replayShare: 0 })
  onTestFinished(() => load.close())
  await runUntil(load, RECORDS)
  const effects = (await sandbox.json('GET', '/_sandbox/effects')).body as EffectEntry[]
  return { sabotage, findings: checkHistory(load.history(), effects).findings, load }
}

function named(findings: readonly Finding[], kind: Finding['kind']): string[] {
  return findings.flatMap((finding) => (finding.kind === kind ? [finding.of] : [])).sort()
}

test('a sound adapter: not one finding, and every record has its final answer', async () => {
  const { findings, load } = await findingsWith(1, { writes: 0, replies: 0 })
  expect(findings).toEqual([])
  expect(load.history().writes.length).toBeGreaterThanOrEqual(RECORDS)
})

test('an adapter that drops one record in 1000, doubles one, and swaps answers: exactly those are found', async () => {
  const { sabotage, findings } = await findingsWith(2, { writes: 0.001, replies: 0.02 })
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
