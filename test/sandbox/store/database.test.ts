import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { markSeeded, openDatabase, transact } from '../../../src/sandbox/store/database.ts'
import { openStore } from './open-store.ts'

const file = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'x.db')
}

test('a new file has the tables and waits for its seed', () => {
  const location = file()
  const { database, fresh } = openDatabase(location, 'the class of seed 1')
  expect(fresh).toBe(true)
  markSeeded(database, 'the class of seed 1')
  database.close()
  const again = openDatabase(location, 'the class of seed 1')
  expect(again.fresh).toBe(false)
  again.database.close()
})

test.each([['the class of seed 2'], ['the school of seed 1']])(
  'a file of other content than %s is refused',
  (content) => {
    const location = file()
    const { database } = openDatabase(location, 'the class of seed 1')
    markSeeded(database, 'the class of seed 1')
    database.close()
    expect(() => openDatabase(location, content)).toThrow(
      expect.objectContaining({ code: 'ADP_USAGE', message: expect.stringContaining(content) as unknown }),
    )
  },
)

test('a file whose seed was never finished is refused', () => {
  const location = file()
  openDatabase(location, 'a').database.close()
  expect(() => openDatabase(location, 'a')).toThrow(expect.objectContaining({ code: 'ADP_USAGE' }))
})

test('a transaction is kept whole or not at all, also inside another', () => {
  const { database } = openStore()
  const insert = (name: string) => database.prepare('INSERT INTO meta VALUES (?, ?)').run(name, '')
  const names = () =>
    database
      .prepare('SELECT name FROM meta ORDER BY name')
      .all()
      .map(({ name }) => name)
  expect(transact(database, () => transact(database, () => insert('a').changes))).toBe(1)
  expect(() =>
    transact(database, () => {
      insert('b')
      transact(database, () => insert('a'))
    }),
  ).toThrow()
  expect(names()).toEqual(['a'])
})
