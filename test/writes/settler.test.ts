import { expect, it, onTestFinished } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createNoJournal, type Settled } from '../../src/journal/index.ts'
import { createActiveRecords, createPredecessorWatch } from '../../src/writes/index.ts'
import { createSettler, type Settler } from '../../src/writes/settler.ts'
import { createManualClock } from '../support/manual-clock.ts'

const settledAs = (position: number): Settled => ({ position, state: 'confirmed', answer: '201' })
const part = { contentId: undefined, contentIdInHttp: false, changeset: undefined, status: 201, json: '' }

/** A settler of a run with `count` records, over a journal that notes its calls or fails. */
function open(count: number, settle?: () => Promise<void>) {
  const clock = createManualClock()
  const commits: number[][] = []
  const reported: number[] = []
  const journal = {
    ...createNoJournal(),
    settle: (_batch: number, outcomes: readonly Settled[]) => {
      commits.push(outcomes.map(({ position }) => position))
      return settle?.() ?? Promise.resolve()
    },
  }
  const positions = Array.from({ length: count }, (_, index) => index)
  const claim = createActiveRecords().claim(1, positions, count, 1)
  onTestFinished(() => claim.end())
  const settler = createSettler(
    { journal, clock, predecessors: createPredecessorWatch(journal, clock) },
    { batch: 1, lease: 1, count },
    claim,
    (position) => reported.push(position),
  )
  const outcome = (position: number): void => settler.settle(settledAs(position), part)
  return { clock, commits, reported, settler, outcome, claim }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
const settleAll = (settler: Settler): Promise<unknown> =>
  settler.flushed().then(
    () => 'durable',
    (cause: unknown) => cause,
  )

it('keeps the outcomes of a run in one commit when they come shortly after each other', async () => {
  const { commits, reported, outcome, settler, clock } = open(4)
  for (const position of [2, 0, 3, 1]) {
    outcome(position)
    await turns()
    await clock.pass(2)
  }
  await settler.flushed()
  expect({ commits, reported }).toEqual({ commits: [[2, 0, 3, 1]], reported: [2, 0, 3, 1] })
})

it('keeps an outcome that waits for the others of its run after a moment', async () => {
  const { commits, reported, outcome, clock, claim } = open(3)
  outcome(1)
  await turns()
  expect(commits).toEqual([])
  await clock.pass(50)
  await turns()
  expect({ commits, reported, open: [0, 1, 2].filter((position) => claim.has(position)) }).toEqual({
    commits: [[1]],
    reported: [1],
    open: [0, 2],
  })
})

it('keeps the last outcome of a run at once', async () => {
  const { commits, outcome } = open(1)
  outcome(0)
  await turns()
  expect(commits).toEqual([[0]])
})

it('keeps an outcome at once that a later record of its key waits for', async () => {
  const { commits, outcome, settler } = open(3)
  const durable = settler.durable(0)
  outcome(0)
  expect(await durable).toBe(true)
  expect(commits).toEqual([[0]])
})

it('reports nothing that the journal could not keep, and releases who waits', async () => {
  const full = new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.')
  const { reported, outcome, settler } = open(3, () => Promise.reject(full))
  const durable = settler.durable(0)
  outcome(0)
  expect(await durable).toBe(false)
  expect({ failed: settler.hasFailed(), reported }).toEqual({ failed: true, reported: [] })
  expect(await settleAll(settler)).toBe(full)
})
