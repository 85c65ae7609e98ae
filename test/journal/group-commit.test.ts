import { describe, expect, it } from 'vitest'

import {
  type CommitGate,
  createGroupCommit,
  type Operation,
  type OperationResult,
  passGate,
} from '../../src/journal/group-commit.ts'
import { gaveUp, type StoreError } from '../../src/journal/store-error.ts'
import type { Committed } from '../../src/journal/group-commit.ts'
import { batchOf, beginNew, confirmed } from './batches.ts'
import { createJournalClock, makeFolder, openSqlite } from './open-sqlite.ts'

const operation = (batch: number): Operation => ({ kind: 'answered', batches: [batch] })
const beginning = (key: string): Operation => ({ kind: 'begin', batch: batchOf([key]), hasRoom: true })
const transient: StoreError = { kind: 'transient', message: 'the disk is full' }

/** Creates a group commit. Its store ends the first groups with `answers`, and commits later groups. For `wait` the test ends the group. */
function createLane(answers: (StoreError | 'wait')[]) {
  const clock = createJournalClock()
  const groups: (readonly Operation[])[] = []
  const gates: CommitGate[] = []
  const waiting: ((committed: Committed) => void)[] = []
  const done = (operations: readonly Operation[]): Committed => ({
    ok: true,
    results: operations.map((): OperationResult => 'done'),
  })
  const lane = createGroupCommit({
    clock,
    commit: (operations, gate) => {
      groups.push(operations)
      gates.push(gate)
      const answer = answers.shift()
      if (answer === 'wait') return new Promise((resolve) => waiting.push(resolve))
      return Promise.resolve(answer === undefined ? done(operations) : { ok: false, error: answer })
    },
  })
  const answer = (committed: Committed): void => waiting.shift()?.(committed)
  const settle = (operations: readonly Operation[]): void => answer(done(operations))
  return {
    clock,
    groups,
    gates,
    lane,
    answer,
    settle,
    numbers: () => groups.map((group) => group.map((one) => (one.kind === 'answered' ? one.batches[0] : 0))),
  }
}

/** Waits for all work that is queued for this turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

describe('group commit', () => {
  it('commits all waiting operations together, in the order of the calls', async () => {
    const { lane, numbers, settle, groups } = createLane(['wait'])
    const first = [1, 2, 3].map((n) => lane.submit(operation(n), 1_000))
    await turn()
    const second = [4, 5].map((n) => lane.submit(operation(n), 1_000))
    await turn()
    expect(numbers()).toEqual([[1, 2, 3]])
    settle(groups[0] ?? [])
    await Promise.all([...first, ...second])
    expect(numbers()).toEqual([[1, 2, 3], [4, 5]]) // prettier-ignore
    await lane.idle()
  })

  it('limits the operations and the bytes of a group', async () => {
    const { lane, groups } = createLane([])
    await Promise.all(Array.from({ length: 300 }, (_, n) => lane.submit(operation(n), 1_000)))
    expect(groups.map((group) => group.length)).toEqual([256, 44])
    const batch = batchOf(['a'], { payload: new Uint8Array(5 * 1024 * 1024) })
    const large: Operation = { kind: 'begin', batch, hasRoom: true }
    await Promise.all([large, large, large].map((one) => lane.submit(one, 1_000)))
    expect(groups.slice(2).map((group) => group.length)).toEqual([1, 1, 1])
  })

  it('retries a failed group in the same order, with a longer pause before each retry', async () => {
    const { lane, numbers, clock } = createLane([transient, transient])
    const results = [1, 2].map((n) => lane.submit(operation(n), 1_000))
    await turn()
    await clock.pass(50)
    await clock.pass(99)
    expect(numbers()).toHaveLength(2)
    await clock.pass(1)
    expect(await Promise.all(results)).toEqual(['done', 'done'])
    expect(numbers()).toEqual([[1, 2], [1, 2], [1, 2]]) // prettier-ignore
  })

  it('abandons an operation after its timeout', async () => {
    const { lane, numbers, clock } = createLane(Array.from({ length: 10 }, () => transient))
    const failed = expect(lane.submit(operation(1), 120)).rejects.toMatchObject({
      code: 'ADP_JOURNAL_UNAVAILABLE',
      message: expect.stringContaining('the disk is full') as unknown,
    })
    await turn()
    await clock.pass(120)
    await failed
    const tries = numbers().length
    await clock.pass(5_000)
    expect(numbers()).toHaveLength(tries)
    await lane.idle()
  })

  it('counts an operation as ended only after the commit, even if the caller gave up earlier', async () => {
    const { lane, clock, settle, groups, gates } = createLane(['wait'])
    const failed = expect(lane.submit(beginning('a'), 100)).rejects.toMatchObject({
      code: 'ADP_OUTCOME_UNKNOWN',
    })
    await turn()
    expect(gates.map(passGate)).toEqual([true])
    await clock.pass(100)
    await failed
    expect(lane.areEnded(1)).toBe(false)
    settle(groups[0] ?? [])
    await lane.idle()
    expect(lane.areEnded(1)).toBe(true)
  })

  it('drops a batch if its caller gave up before the commit, and commits the rest of the group', async () => {
    const { lane, clock, groups, gates, answer } = createLane(['wait'])
    const short = expect(lane.submit(beginning('a'), 100)).rejects.toMatchObject({
      code: 'ADP_JOURNAL_UNAVAILABLE',
    })
    const long = lane.submit(beginning('b'), 1_000)
    await turn()
    await clock.pass(100)
    await short
    expect(gates.map(passGate)).toEqual([false])
    answer({ ok: false, error: gaveUp })
    await turn()
    await clock.pass(50)
    expect(await long).toBe('done')
    expect(groups.map((group) => group.length)).toEqual([2, 1])
    expect(lane.areEnded(1)).toBe(true)
  })

  it('reports an unknown outcome if the answer to a commit is lost and the retry finds the store damaged', async () => {
    const damaged: StoreError = { kind: 'damaged', message: 'its file is gone' }
    const { lane, clock } = createLane([{ ...transient, kind: 'doubtful' }, damaged])
    const told = expect(lane.submit(beginning('a'), 1_000)).rejects.toMatchObject({
      code: 'ADP_OUTCOME_UNKNOWN',
    })
    await turn()
    await clock.pass(50)
    await told
  })

  it('keeps retrying an operation with an unknown outcome while the store is unreachable, even after the caller has given up', async () => {
    const { lane, clock, numbers } = createLane([{ ...transient, kind: 'doubtful' }, transient])
    const refused = lane.submit(operation(1), 60)
    const told = expect(refused).rejects.toMatchObject({ code: 'ADP_OUTCOME_UNKNOWN' })
    await turn()
    await clock.pass(50)
    await turn()
    await clock.pass(10)
    await told
    await clock.pass(1_000)
    await turn()
    expect([numbers(), lane.areEnded(1)]).toEqual([[[1], [1], [1]], true])
  })

  it('retries an operation if the answer to its commit was lost, even after the caller has given up', async () => {
    const { lane, clock, numbers } = createLane([{ ...transient, kind: 'doubtful' }])
    const failed = expect(lane.submit(operation(1), 10)).rejects.toMatchObject({
      code: 'ADP_OUTCOME_UNKNOWN',
    })
    await turn()
    await clock.pass(10)
    await failed
    await clock.pass(50)
    await lane.idle()
    expect([numbers(), lane.areEnded(1)]).toEqual([[[1], [1]], true])
  })

  it('after the caller has given up, a retry checks whether the lost commit stored the batch, and stores no new batch', async () => {
    const { lane, clock, groups } = createLane([{ ...transient, kind: 'doubtful' }, transient])
    const told = expect(lane.submit(beginning('a'), 60)).rejects.toMatchObject({
      code: 'ADP_OUTCOME_UNKNOWN',
    })
    await turn()
    await clock.pass(50)
    await turn()
    await clock.pass(10)
    await told
    await clock.pass(1_000)
    await turn()
    const rooms = groups.flatMap((group) => group.map((one) => one.kind === 'begin' && one.hasRoom))
    expect(rooms).toEqual([true, true, false])
  })

  it.each([
    ['before idle() is called', 'doubtful'],
    ['after idle() is called', 'transient'],
  ] as const)(
    'stops retrying a commit without an answer if the store stays unreachable and the caller gives up %s',
    async (_when, kind) => {
      const gone = Array.from({ length: 20 }, (): StoreError => ({ ...transient, kind }))
      const { lane, clock, groups } = createLane([{ ...transient, kind: 'doubtful' }, ...gone])
      const told = expect(lane.submit(operation(1), 60)).rejects.toMatchObject({
        code: 'ADP_OUTCOME_UNKNOWN',
      })
      await turn()
      if (kind === 'doubtful') {
        await clock.pass(60)
        await turn()
        await lane.idle()
      } else {
        const idle = lane.idle()
        await clock.pass(60)
        await idle
      }
      await told
      const tries = groups.length
      await clock.pass(5_000)
      await turn()
      expect(groups.length).toBe(tries)
    },
  )

  it('rejects only the operation that the store refuses, and commits the rest of the group', async () => {
    const refused: StoreError = { kind: 'refused', message: 'the database rejects the operation' }
    const { lane, numbers } = createLane([refused, refused])
    const results = await Promise.allSettled([1, 2, 3].map((n) => lane.submit(operation(n), 1_000)))
    expect(results).toMatchObject([
      {
        status: 'rejected',
        reason: { code: 'ADP_INTERNAL', message: expect.stringContaining(refused.message) as unknown },
      },
      { status: 'fulfilled', value: 'done' },
      { status: 'fulfilled', value: 'done' },
    ])
    expect(numbers()).toEqual([[1, 2, 3], [1], [2], [3]]) // prettier-ignore
  })

  it('stores 64 simultaneous batches in one transaction, and their outcomes in a second transaction', async () => {
    const { journal, groups } = await openSqlite(`${await makeFolder()}/journal.db`)
    const batches = await Promise.all(
      Array.from({ length: 64 }, (_, n) => beginNew(journal, batchOf([`key ${n}`, `other ${n}`]))),
    )
    expect([...batches].sort((one, other) => one - other)).toEqual(batches)
    await Promise.all(batches.map((batch) => journal.settle(batch, [confirmed(0), confirmed(1)])))
    expect(groups.map(({ operations }) => operations.length)).toEqual([64, 64])
    expect(await journal.balances()).toMatchObject([{ received: 128, confirmed: 128 }])
  })
})
