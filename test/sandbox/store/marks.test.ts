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

test('the numbering goes on where the database left it', () => {
  const { store, database, ids } = open()
  store.write(draft, 'V3', 'replace')
  expect(createMarkStore(database, ids).write(draft, 'V3', 'replace')).toMatchObject({ seq: 2 })
})
