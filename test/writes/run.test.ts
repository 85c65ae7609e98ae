import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createSlicing } from '../../src/http/slices.ts'
import { createNoJournal, type Journal } from '../../src/journal/index.ts'
import { createActiveRecords, createPredecessorWatch } from '../../src/writes/index.ts'
import type { Plan } from '../../src/writes/plan.ts'
import { type RunContext, runRecords } from '../../src/writes/run.ts'
import type { WriteSession } from '../../src/writes/write-session.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { guid } from '../support/batch-request.ts'
import { plannedRecord } from './planned-record.ts'

const positions = [0, 1, 2]
const unavailable = new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The disk is full.')
const lost = new AdapterError('ADP_JOURNAL_LOST', 'Another instance has it.')

/** Runs three records, the one after the other, and gives those that were sent. */
async function run(own: Partial<Journal>, beforeEach: (position: number) => void = () => undefined) {
  const sent: number[] = []
  const journal: Journal = { ...createNoJournal(), ...own }
  const clock = createManualClock()
  const plan: Plan = {
    records: positions.map((n) => plannedRecord(n)),
    unmappedFields: 0,
    convertedFields: 0,
    changesets: 0,
    outcomesShown: true,
    ids: undefined,
  }
  const context: RunContext = {
    journal,
    predecessors: createPredecessorWatch(journal, clock),
    orphans: new Map(),
    active: createActiveRecords(),
    clock,
    nowMs: () => 0,
    slicing: createSlicing(),
  }
  const session: Pick<WriteSession, 'postRecords' | 'budgetMs' | 'withdrawn'> = {
    budgetMs: 0,
    withdrawn: new Promise<void>(() => undefined),
    postRecords: async (tasks, onOutcome, permission) => {
      for (const { position } of tasks) {
        beforeEach(position)
        const may = permission.maySend() || (await permission.renew())
        if (may) sent.push(position)
        onOutcome(
          position,
          may
            ? { kind: 'accepted', reply: { ExternalID: guid(5) } }
            : { kind: 'notApplied', reason: 'leaseLost', retryAfterMs: undefined },
        )
        // The outcome waits for others of its run before it goes to the journal.
        await clock.pass(50)
        await new Promise((resolve) => setImmediate(resolve))
        await new Promise((resolve) => setImmediate(resolve))
      }
      return undefined
    },
  }
  const error = await runRecords(
    context,
    session,
    {
      batch: 7,
      lease: 1,
      receivedMs: 0,
      plan,
      positions,
      after: new Map([[1, [{ batch: 3, position: 4 }]]]),
      mayHaveLeft: () => false,
      clientWaits: true,
      replyContext: { context: '', newId: () => guid(1), dataEnvelope: false },
    },
    () => undefined,
  ).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  return { sent, error, orphans: [...context.orphans].map(([batch, { after }]) => [batch, after]) }
}

it('sends everything while the lease holds', async () => {
  expect(await run({})).toEqual({ sent: positions, error: undefined, orphans: [] })
})

it('sends nothing more under a new lease: others may have taken the batch over', async () => {
  let lease = 1
  const { sent } = await run({ lease: () => lease }, (position) => {
    if (position === 1) lease = 2
  })
  expect(sent).toEqual([0])
})

it.each([
  ['goes on where it still is the same', 1, positions],
  ['sends nothing more where it is a new one', 2, [0]],
  ['sends nothing more where the journal does not say', undefined, [0]],
])('renews a lease that is in doubt, and %s', async (_what, renewed, sent) => {
  let lease: number | undefined = 1
  const held = await run(
    {
      lease: () => lease,
      renewLease: () => Promise.resolve((lease = renewed)),
    },
    (position) => {
      if (position === 1) lease = undefined
    },
  )
  expect(held.sent).toEqual(sent)
})

it.each([
  ['for the background', unavailable, 'ADP_OUTCOME_UNKNOWN', [[7, new Map([[0, []], [1, [{ batch: 3, position: 4 }]], [2, []]])]]],
  ['to the instance that has taken the batch over', lost, 'ADP_JOURNAL_LOST', []],
] as const)('sends nothing more once an outcome cannot be kept, and leaves the rest %s', async (_to, error, code, orphans) => {
  expect(await run({ settle: () => Promise.reject(error) })).toMatchObject({ sent: [0], error: { code }, orphans })
}) // prettier-ignore
