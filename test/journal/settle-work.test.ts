import { DatabaseSync } from 'node:sqlite'

import { expect, it, vi } from 'vitest'

import { openJournal, type Settled } from '../../src/journal/index.ts'
import { readSettle } from '../../src/journal/sqlite/read-rows.ts'
import { type GroupStatements, prepareStatements } from '../../src/journal/sqlite/statements.ts'
import { toColumns } from '../../src/journal/store/operations.ts'
import { batchOf, beginNew } from './batches.ts'
import { makeFolder } from './open-sqlite.ts'

const RECORDS = 600

/** Counts calls of statements and the rows that they give. */
function countWork(on: GroupStatements): () => number {
  const statements = Object.values(on).flat()
  const lists = statements.map((statement) => vi.spyOn(statement, 'all').mock.results)
  const rows = statements.map((statement) => vi.spyOn(statement, 'get').mock.results)
  const sum = (work: number, { value }: { readonly value: unknown }): number =>
    work + 1 + (Array.isArray(value) ? value.length : 0)
  return () => lists.flat().reduce(sum, rows.flat().reduce(sum, 0))
}

const outcomes: readonly (readonly [
  name: string,
  side: 'v2' | undefined,
  of: (position: number) => Settled,
])[] = [
  ['confirmed', undefined, (position) => ({ position, state: 'confirmed', answer: 'yes' })],
  ['lost by V2', 'v2', (position) => ({ position, state: 'unknown', answer: undefined, retry: 'resend' })],
  [
    'refused and confirmed in turns',
    undefined,
    (position) =>
      position % 2 === 0
        ? { position, state: 'refused', answer: 'later', retry: 'resend' }
        : { position, state: 'confirmed', answer: 'yes' },
  ],
]

it.each(outcomes)(
  'records that are %s are settled with a few rows each, however they divide into keys',
  async (_, side, of) => {
    const file = `${await makeFolder()}/journal.db`
    const journal = await openJournal({ url: `sqlite:${file}` })
    const counts: number[] = []
    for (const keys of [1, 10, RECORDS]) {
      const names = Array.from({ length: RECORDS }, (_record, position) => `${keys} ${position % keys}`)
      const batch = await beginNew(journal, batchOf(names, { side }))
      const settled = names.map((_name, position) => of(position))
      const database = new DatabaseSync(file)
      const on = prepareStatements(database)
      const work = countWork(on)
      const operation = { kind: 'settle', batch, lease: undefined, ...toColumns(settled) } as const
      const rows = readSettle(on, [operation])
      const superseded = rows.older([operation])?.length
      database.close()
      counts.push(work())
      expect(work()).toBeLessThan(5 * RECORDS)
      await journal.settle(batch, settled)
      const kept = (await journal.load(batch))?.records.filter((one) => one.superseded).length
      expect(kept).toBe(superseded)
    }
    await journal.close()
    // One row for each key and each record is as much as any mix of keys may cost more than another.
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(3 * RECORDS)
  },
)
