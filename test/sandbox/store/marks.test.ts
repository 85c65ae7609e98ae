import { expect, test } from 'vitest'
import { zeroGuid } from '../../../src/sandbox/identity.ts'
import { createMarkStore } from '../../../src/sandbox/store/marks.ts'
import type { MarkDraft } from '../../../src/sandbox/store/marks.ts'
import { openStore } from './open-store.ts'

const own = '11111111-1111-4111-8111-111111111111'
const draft: MarkDraft = {
  learner: 1,
  session: 100,
  code: 3,
  present: true,
  absent: false,
  minutesLate: 5,
  comment: 'c',
  recordedOn: 1000,
  actor: 1,
  changeProcessName: 'p',
  externalId: zeroGuid,
  writtenAt: 5000,
}

/** A store whose seeded history is one mark of learner 1 in session 99. */
function open() {
  const { database, ids } = openStore()
  database.exec('INSERT INTO mark VALUES (1, 99, 0, 1, 1, NULL, NULL, 10, 1, NULL, NULL, 0)')
  return { store: createMarkStore(database, ids), seededId: ids.guid('mark', 1, 99), ids, database }
}

test('a mark is written, read and logged', () => {
  const { store, ids } = open()
  const externalId = ids.guid('posted', 1)
  expect(store.write(draft, 'V3', 'replace')).toEqual({ outcome: 'created', externalId, seq: 1 })
  const [mark] = store.range(1, 100, 100)
  expect({ ...mark, writtenAt: draft.writtenAt }).toEqual({ ...draft, copy: 0, externalId, seq: 1 })
  expect(store.byId(externalId)).toEqual(mark)
  expect(store.effects()).toEqual([
    {
      ...{ seq: 1, face: 'V3', learner: 1, session: 100, code: 3, present: true, absent: false },
      ...{ minutesLate: 5, comment: 'c', externalId },
    },
  ])
})

test('a seeded mark has an id that is stored nowhere, and keeps it when it is replaced', () => {
  const { store, seededId } = open()
  expect(store.byId(seededId)).toMatchObject({ session: 99, code: 1, seq: 0 })
  const result = store.write({ ...draft, session: 99 }, 'V2', 'replace')
  expect(result).toEqual({ outcome: 'replaced', externalId: seededId, seq: 1 })
  expect(store.byId(seededId)).toMatchObject({ code: 3, seq: 1 })
})

test.each([
  ['replace', 1],
  ['duplicate', 2],
] as const)('two writes to one session: %s leaves %i', (onExisting, count) => {
  const { store } = open()
  store.write(draft, 'V3', onExisting)
  store.write(draft, 'V3', onExisting)
  expect(store.range(1, 100, 100)).toHaveLength(count)
  expect(store.effects().map(({ seq }) => seq)).toEqual([1, 2])
})

test('a conflict writes and logs nothing', () => {
  const { store } = open()
  expect(store.write({ ...draft, session: 99 }, 'V3', 'conflict')).toEqual({
    outcome: 'conflict',
    reason: 'marked',
  })
  store.write({ ...draft, externalId: own }, 'V3', 'replace')
  expect(store.write({ ...draft, session: 101, externalId: own }, 'V3', 'replace')).toEqual({
    outcome: 'conflict',
    reason: 'idTaken',
  })
  expect(store.lastSeq()).toBe(1)
})

test('an id of the client replaces the mark that has it, even among duplicates', () => {
  const { store } = open()
  store.write({ ...draft, externalId: own }, 'V3', 'duplicate')
  store.write(draft, 'V3', 'duplicate')
  expect(store.write({ ...draft, externalId: own, comment: 'new' }, 'V3', 'duplicate').outcome).toBe(
    'replaced',
  )
  expect(store.range(1, 100, 100).map(({ comment }) => comment)).toEqual(['new', 'c'])
})

test('what was replaced can be seen as of an effect', () => {
  const { store } = open()
  store.write({ ...draft, session: 99, comment: 'one' }, 'V3', 'replace')
  store.write({ ...draft, session: 99, comment: 'two' }, 'V3', 'replace')
  const [current] = store.range(1, 99, 99)
  if (current === undefined) throw new TypeError('no mark')
  expect(store.before(current, 1)?.comment).toBe('one')
  expect(store.before(current, 0)).toMatchObject({ comment: null, seq: 0 })
  store.write(draft, 'V3', 'replace')
  const [fresh] = store.range(1, 100, 100)
  expect(fresh === undefined ? 'none' : store.before(fresh, 2)).toBeUndefined()
})

test('changes are those written at or after an instant', () => {
  const { store } = open()
  store.write({ ...draft, writtenAt: 5000 }, 'V3', 'replace')
  store.write({ ...draft, session: 99, writtenAt: 6000 }, 'V3', 'replace')
  expect(store.changedSince(5000).map(({ seq }) => seq)).toEqual([1, 2])
  expect(store.changedSince(5001).map(({ seq }) => seq)).toEqual([2])
  expect(store.changedSince(6001)).toEqual([])
  expect(store.history(0).map(({ mark, changedBy }) => [mark.seq, changedBy])).toEqual([
    [1, 1],
    [0, 2],
    [2, 2],
  ])
  expect(store.history(6001)).toEqual([])
})

test('a reset leaves the seeded history and an empty log', () => {
  const { store, database } = open()
  const before = store.range(1, 0, 1000)
  store.write({ ...draft, session: 99 }, 'V3', 'replace')
  store.write({ ...draft, session: 99 }, 'V3', 'replace')
  store.write(draft, 'V3', 'replace')
  store.reset()
  expect(store.range(1, 0, 1000)).toEqual(before)
  expect([store.effects(), store.lastSeq(), store.history(0)]).toEqual([[], 0, []])
  expect(database.prepare('SELECT count(*) AS n FROM mark_history').get()?.['n']).toBe(0)
})

test('a rolled-back write gives its number back', () => {
  const { store, database } = open()
  database.exec('BEGIN')
  store.write(draft, 'V3', 'replace')
  database.exec('ROLLBACK')
  store.reload()
  expect(store.write(draft, 'V3', 'replace')).toMatchObject({ seq: 1 })
})

test('the numbering goes on where the database left it', () => {
  const { store, database, ids } = open()
  store.write(draft, 'V3', 'replace')
  expect(createMarkStore(database, ids).write(draft, 'V3', 'replace')).toMatchObject({ seq: 2 })
})
