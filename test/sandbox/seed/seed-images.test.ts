import { DatabaseSync } from 'node:sqlite'

import { expect, it, onTestFinished } from 'vitest'

import { seedOnce } from '../../../src/sandbox/seed/seed-images.ts'
import { schemaStatements } from '../../../src/sandbox/store/schema.ts'

/** Fills a database as the seed of this name does, and reads back what it holds. */
function fill(name: string): { database: DatabaseSync; isSeeded: boolean; rows: () => unknown[] } {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  database.exec(schemaStatements)
  let isSeeded = false
  seedOnce(database, name, () => {
    isSeeded = true
    database.exec(`
      INSERT INTO meta VALUES ('content', '${name}');
      INSERT INTO learner VALUES (1, 'one', 10, 20), (2, 'two', 10, 20);
      INSERT INTO actor VALUES (1, 'teacher');
      INSERT INTO mark VALUES (1, 30, 0, 4, 1, NULL, 'bus', 50, 1, NULL, NULL, 0);
    `)
  })
  const rows = (): unknown[] =>
    ['meta', 'learner', 'actor', 'mark'].flatMap((table) => database.prepare(`SELECT * FROM ${table}`).all())
  return { database, isSeeded, rows }
}

it('a second database of the same name holds the same rows, and is not seeded again', () => {
  const [first, second] = [fill('one'), fill('one')]
  expect([first.isSeeded, second.isSeeded]).toEqual([true, false])
  expect(second.rows()).toEqual(first.rows())
  expect(second.rows()).toHaveLength(5)
})

it('what is written to one of them is in no other', () => {
  const first = fill('two')
  const before = first.rows()
  first.database.exec("UPDATE mark SET comment = 'train'; DELETE FROM learner")
  const second = fill('two')
  expect(second.rows()).toEqual(before)
  second.database.exec('DELETE FROM mark')
  expect(fill('two').rows()).toEqual(before)
})

it('keeps the names that were seeded last', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  expect(names.map((name) => fill(name).isSeeded)).toEqual(Array(5).fill(true))
  expect(names.toReversed().map((name) => fill(name).isSeeded)).toEqual([false, false, false, false, true])
})
