import { describe, expect, it } from 'vitest'
import { createNoJournal, type Journal } from '../../src/journal/index.ts'
import { afterOf, batchOf } from './batches.ts'

const begin = async (journal: Journal, ...keys: readonly string[]): Promise<unknown> =>
  afterOf(await journal.begin(batchOf(keys)))

describe('a journal without a store', () => {
  it('orders records of the same key across batches, but not within a batch', async () => {
    const journal = createNoJournal()
    expect(await begin(journal, 'a', 'b', 'a')).toEqual({})
    expect(await begin(journal, 'c', 'a')).toEqual({
      1: [{ batch: 1, position: 2 }],
    })
    await journal.settle(1, [{ position: 0, state: 'confirmed', answer: undefined }])
    expect(await begin(journal, 'a')).toEqual({
      0: [{ batch: 2, position: 1 }],
    })
    const third = { batch: 3, position: 0 }
    expect(await journal.olderOpen([third, { batch: 2, position: 1 }, { batch: 1, position: 2 }])).toEqual([
      { batch: 2, position: 1 },
      { batch: 1, position: 2 },
      undefined,
    ])
    const asked = [0, 1, 2].map((position) => ({ batch: 1, position }))
    expect(await journal.stillOpen(asked)).toEqual([
      { batch: 1, position: 1 },
      { batch: 1, position: 2 },
    ])
  })

  it('returns one shared list of predecessors for thousands of records with the same key', async () => {
    const journal = createNoJournal()
    const keys = Array<string>(20_000).fill('a')
    await begin(journal, ...keys)
    const after = (await begin(journal, ...keys)) as Record<number, readonly unknown[]>
    expect(after[0]).toEqual([{ batch: 1, position: 19_999 }])
    expect([Object.keys(after).length, new Set(Object.values(after)).size]).toEqual([20_000, 1])
    const all = keys.map((_, position) => ({ position, state: 'confirmed', answer: undefined }) as const)
    await journal.settle(1, all)
    expect(await journal.olderOpen([{ batch: 2, position: 0 }])).toEqual([undefined])
    await journal.settle(2, all)
    expect(await begin(journal, 'a')).toEqual({})
  })

  it('treats every batch as new, even a resent batch', async () => {
    const journal = createNoJournal()
    expect(await journal.begin(batchOf(['a'], { name: 'one' }))).toMatchObject({
      kind: 'new',
      batch: 1,
      idsReused: false,
    })
    expect(await journal.begin(batchOf(['a'], { name: 'one' }))).toMatchObject({
      kind: 'new',
      batch: 2,
      idsReused: false,
    })
    expect(await journal.load(1)).toBeUndefined()
  })

  it('counts each record once even if its outcome is settled twice', async () => {
    const journal = createNoJournal()
    const records = [{ key: 'a' }, { key: 'b', refused: { answer: 'no' } }, { key: 'c' }]
    await journal.begin(batchOf([], { records }))
    const outcome = [{ position: 0, state: 'unknown', answer: undefined }] as const
    await journal.settle(1, outcome)
    await journal.settle(1, outcome)
    expect(await journal.balances()).toEqual([
      {
        partner: 'acme',
        received: 3,
        open: 1,
        confirmed: 0,
        refused: 1,
        unknown: 1,
        parked: 0,
        notApplied: 0,
      },
    ])
    await journal.settle(1, [{ position: 2, state: 'confirmed', answer: undefined }])
    await journal.settle(1, outcome)
    expect(await journal.balances()).toEqual([
      {
        partner: 'acme',
        received: 3,
        open: 0,
        confirmed: 1,
        refused: 1,
        unknown: 1,
        parked: 0,
        notApplied: 0,
      },
    ])
  })

  it('returns the latest confirmed mark of a key, and reports whether the key has a newer open record', async () => {
    const journal = createNoJournal()
    await journal.begin(batchOf(['a', 'b']))
    await journal.settle(1, [
      { position: 0, state: 'confirmed', answer: undefined, mark: { externalId: 'm', recordedMs: 5 } },
    ])
    await journal.begin(batchOf(['a', 'a']))
    const first = await journal.knownMarks({ batch: 2, position: 0 })
    expect([first.confirmedAt('m'), first.confirmedAt('n'), first.newer]).toEqual([[5], [], 'open'])
    const second = await journal.knownMarks({ batch: 2, position: 1 })
    expect([second.confirmedAt('m'), second.newer]).toEqual([[5], 'none'])
    const other = await journal.knownMarks({ batch: 1, position: 1 })
    expect([other.confirmedAt('m'), other.newer]).toEqual([[], 'none'])
  })
})
