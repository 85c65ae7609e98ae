import { expect, test } from 'vitest'
import { createActors } from '../../../src/sandbox/store/actors.ts'
import { createEntityStore } from '../../../src/sandbox/store/entities.ts'
import { loadRoster } from '../../../src/sandbox/store/roster.ts'
import { openStore } from './open-store.ts'

function open() {
  const { database } = openStore()
  const insert = database.prepare('INSERT INTO entity VALUES (?, ?, ?, ?, NULL)')
  for (const [learner, key] of [
    [2, 'b'],
    [1, 'c'],
    [1, 'a'],
  ] as const)
    insert.run('Set', learner, key, `{"k":"${key}"}`)
  return createEntityStore(database)
}

test('entities come by learner and key', () => {
  const store = open()
  expect(store.all('Set').map(({ learner, key }) => [learner, key])).toEqual([
    [1, 'a'],
    [1, 'c'],
    [2, 'b'],
  ])
  expect(store.all('Set').at(-1)).toEqual({ learner: 2, key: 'b', body: '{"k":"b"}' })
  expect(store.all('Other')).toEqual([])
})

test('an update is seen, and undone by a reset to what the seed gave', () => {
  const store = open()
  const version = store.version()
  store.update('Set', { learner: 2, key: 'b', body: '1' })
  store.update('Set', { learner: 2, key: 'b', body: '2' })
  expect(store.all('Set').at(-1)?.body).toBe('2')
  expect(store.version()).not.toBe(version)
  store.reset()
  expect(store.all('Set').at(-1)?.body).toBe('{"k":"b"}')
})

test('a reload tells readers to look again', () => {
  const store = open()
  const version = store.version()
  store.reload()
  expect(store.version()).not.toBe(version)
})

test('actors get a number on first sight and keep it', () => {
  const { database } = openStore()
  const actors = createActors(database)
  expect([actors.number('a'), actors.number('b'), actors.number('a')]).toEqual([1, 2, 1])
  expect([actors.externalId(2), actors.externalId(9)]).toEqual(['b', ''])
  expect(createActors(database).number('b')).toBe(2)
  database.exec('BEGIN')
  actors.number('c')
  database.exec('ROLLBACK')
  actors.reload()
  expect([actors.number('d'), actors.number('c')]).toEqual([3, 4])
})

test('the roster is found by number and by id', () => {
  const { database } = openStore()
  database.exec("INSERT INTO learner VALUES (1, 'id-1', 10, 99), (2, 'id-2', 5, 9)")
  const roster = loadRoster(database)
  const leaver = { number: 2, externalId: 'id-2', admissionDay: 5, leavingDay: 9 }
  expect(roster.entries).toHaveLength(2)
  expect([roster.byNumber(2), roster.byId('id-2'), roster.byNumber(3), roster.byId('x')]).toEqual([
    leaver,
    leaver,
    undefined,
    undefined,
  ])
})

test('the entities of a set are made once, when it is first read, and again where that was rolled back', () => {
  const { database } = openStore()
  const made: string[] = []
  const compose = (set: string) => {
    made.push(set)
    return [{ learner: 1, key: 'k', body: '{}' }]
  }
  const store = createEntityStore(database, compose)
  database.exec('BEGIN')
  expect(store.all('A')).toHaveLength(1)
  database.exec('ROLLBACK')
  store.reload()
  expect([store.all('A'), store.all('A'), store.all('B')].map((found) => found.length)).toEqual([1, 1, 1])
  expect(createEntityStore(database, compose).all('A')).toHaveLength(1)
  expect(made).toEqual(['A', 'A', 'B'])
})
