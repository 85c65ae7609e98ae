import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createNoJournal, type Journal, type Settled } from '../../src/journal/index.ts'
import type { Orphan } from '../../src/writes/active-records.ts'
import { createResting, releaseOrphans } from '../../src/writes/resting.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createWriteContext } from './write-context.ts'

const orphan = (...positions: number[]): Orphan => ({
  after: new Map(positions.map((position) => [position, []])),
  lease: 1,
  sinceMs: 0,
})

/** Orphans 1 and 2, which wait for credentials and hold up newer records longer than a lost write is looked for. */
async function releaseWith(own: Partial<Journal>, isBusy: (batch: number) => boolean = () => false) {
  const clock = createManualClock()
  const settled: unknown[] = []
  const journal: Journal = {
    ...createNoJournal(),
    handOver: () => Promise.resolve([]),
    blocking: (batches) => Promise.resolve(batches.map((batch) => ({ batch, position: 0 }))),
    settle: (batch, outcomes: readonly Settled[]) => {
      settled.push(...outcomes.map(({ position, state }) => [batch, position, state]))
      return Promise.resolve()
    },
    ...own,
  }
  const context = createWriteContext({ journal, clock, orphans: new Map([[1, orphan(0)], [2, orphan(0, 1)]]) }) // prettier-ignore
  const resting = createResting(context)
  const waiting = {
    missing: 'credentials',
    partner: 'acme',
    owner: 'o',
    sender: undefined,
    untilMs: Infinity,
  } as const
  for (const batch of [1, 2]) resting.wait(batch, waiting)
  await clock.pass(1_000)
  const released = releaseOrphans(context, resting, isBusy, () => 500)
  return {
    context,
    released,
    settled,
    left: () => [...context.orphans].map(([batch, { after }]) => [batch, [...after.keys()]]),
  }
}

it('ends records that newer ones waited for long enough, and keeps the others of their batch', async () => {
  const { released, left, settled } = await releaseWith({})
  await released
  expect(settled).toEqual([[1, 0, 'unknown'], [2, 0, 'unknown']]) // prettier-ignore
  expect(left()).toEqual([[2, [1]]])
})

it('hands orphans over to instances that asked for them', async () => {
  const { released, left } = await releaseWith({
    handOver: (held) => Promise.resolve(held),
    blocking: () => Promise.resolve([]),
  })
  await released
  expect(left()).toEqual([])
})

it('leaves alone what a run has, and records that are not its own', async () => {
  const busy = await releaseWith({}, () => true)
  await busy.released
  expect([busy.left(), busy.settled]).toEqual([[[1, [0]], [2, [0, 1]]], []]) // prettier-ignore
  const foreign = await releaseWith({ blocking: () => Promise.resolve([{ batch: 1, position: 5 }]) })
  await foreign.released
  expect(foreign.settled).toEqual([])
})

it('gives up a batch that another instance has by now, and fails with the journal', async () => {
  const failing = (code: 'ADP_JOURNAL_LOST' | 'ADP_JOURNAL_UNAVAILABLE') =>
    releaseWith({ settle: () => Promise.reject(new AdapterError(code, 'no')) })
  const lost = await failing('ADP_JOURNAL_LOST')
  await lost.released
  expect(lost.left()).toEqual([[2, [1]]])
  await expect((await failing('ADP_JOURNAL_UNAVAILABLE')).released).rejects.toMatchObject({
    code: 'ADP_JOURNAL_UNAVAILABLE',
  })
})
