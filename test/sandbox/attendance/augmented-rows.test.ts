import { expect, onTestFinished, test } from 'vitest'
import { augmentedRows, rowById } from '../../../src/sandbox/attendance/augmented-rows.ts'
import type { RowQuery } from '../../../src/sandbox/attendance/augmented-rows.ts'
import { dayNumber } from '../../../src/sandbox/dates.ts'
import { zeroGuid } from '../../../src/sandbox/identity.ts'
import { openSchool } from '../../../src/sandbox/open-school.ts'
import { rollStateOn } from '../../../src/sandbox/roll.ts'
import { readOptions } from '../../../src/sandbox/options.ts'
import { testNow } from '../start-sandbox.ts'

function open() {
  const school = openSchool(
    readOptions({}),
    () => Date.parse(testNow),
    () => undefined,
  )
  onTestFinished(() => school.database.close())
  const rows = (query: RowQuery) => [...augmentedRows(school, query)]
  const learner = (state: string) => {
    const found = school.roster.entries.find((entry) => rollStateOn(entry, school.today()) === state)
    if (found === undefined) throw new TypeError(`no ${state} learner`)
    return found
  }
  return { school, rows, learner }
}
const instant = (date: string): number => Date.parse(`${date}T00:00:00Z`)

test('a leaver has rows up to the last day and no further', () => {
  const { rows, learner } = open()
  const { externalId, leavingDay } = learner('Leaver')
  const found = rows({ bounds: { learners: new Set([externalId]) } })
  expect(found.at(-1)?.position.session).toBe(leavingDay * 2 + 1)
  expect(found.length).toBeGreaterThan(100)
})

test('a learner to come has no rows before the day of admission', () => {
  const { school, rows, learner } = open()
  const future = learner('Future')
  expect(rows({ bounds: { learners: new Set([future.externalId]), to: instant('2026-08-31') } })).toEqual([])
  const session = school.calendar.byNumber(dayNumber('2026-03-02') * 2)
  school.marks.write(
    {
      ...{ learner: future.number, session: session?.number ?? 0, code: 1, present: true, absent: false },
      ...{ minutesLate: null, comment: null, recordedOn: 0, actor: 1, changeProcessName: null },
      ...{ externalId: zeroGuid, writtenAt: 0 },
    },
    'V3',
    'replace',
  )
  // What somebody recorded is shown, on roll or not.
  const found = rows({ bounds: { learners: new Set([future.externalId]), to: instant('2026-08-31') } })
  expect(found.map(({ seq, view }) => [seq, view.start])).toEqual([[1, '2026-03-02T09:00:00Z']])
})

test('rows come by learner and time, and go on after any of them', () => {
  const { rows } = open()
  const query = { bounds: { from: instant('2026-03-06'), to: instant('2026-03-09') } }
  const all = rows(query)
  expect(all).toHaveLength(30 * 8)
  const keys = all.map(({ position: { learner, session, copy } }) => learner * 1e9 + session * 10 + copy)
  expect(keys).toEqual([...keys].sort((one, other) => one - other))
  for (const at of [0, 1, 7, 8, 100, 239])
    expect(rows({ ...query, ...(all[at] === undefined ? {} : { after: all[at].position }) })).toEqual(
      all.slice(at + 1),
    )
})

interface Case extends Omit<RowQuery['bounds'], 'events'> {
  readonly events?: string
}

test.each<[string, Case, number]>([
  ['sessions that exist', { events: 'first' }, 30],
  ['no session', { events: 'none' }, 0],
  ['a session outside the range', { events: 'first', from: instant('2026-04-01') }, 0],
  ['an unknown learner', { learners: new Set(['x']) }, 0],
  ['days after the calendar', { from: instant('2030-01-01') }, 0],
  ['a range upside down', { from: instant('2026-03-02'), to: instant('2026-03-01') }, 0],
])(
  'bounds with %s',
  (_name, { events, ...bounds }: { events?: string; from?: number; to?: number }, count) => {
    const { school, rows } = open()
    const first = school.calendar.schoolSessions(dayNumber('2026-03-02'), 1)[0]?.externalId ?? ''
    const named = events === undefined ? {} : { events: new Set([events === 'first' ? first : 'none']) }
    expect(rows({ bounds: { ...bounds, ...named } })).toHaveLength(count)
  },
)

test('every row can be found by its id', () => {
  const { school, rows } = open()
  const { roster } = school
  const first = roster.entries[0]?.externalId ?? ''
  for (const row of rows({
    bounds: { learners: new Set([first]), from: instant('2026-03-06'), to: instant('2026-03-12') },
  }))
    expect(rowById(school, row.view.externalId)).toEqual(row)
  expect(rowById(school, 'x')).toBeUndefined()
})

test('recorded rows alone are those of the marks', () => {
  const { school, rows } = open()
  const found = rows({ bounds: {}, recordedOnly: true })
  expect(found).toHaveLength(Number(school.database.prepare('SELECT count(*) AS n FROM mark').get()?.['n']))
  expect(found.every(({ seq, view }) => seq === 0 && view.recordedBy !== null)).toBe(true)
})
