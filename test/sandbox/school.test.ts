import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

import { rollStateOn } from '../../src/sandbox/dates.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { groupsOn } from '../../src/sandbox/learner/samples.ts'
import { findLearnerSet } from '../../src/sandbox/learner/learner-sets.ts'
import { readOptions, type SandboxOptions } from '../../src/sandbox/options.ts'
import { openSchool, type School } from '../../src/sandbox/school.ts'
import { openDatabase } from '../../src/sandbox/store/database.ts'
import { fixed, jsonBody, startSandbox, testNow } from './start-sandbox.ts'

const identifiers = findLearnerSet('LearnerIdentifiers') ?? expect.unreachable()
const open = (options: SandboxOptions): School => {
  const school = openSchool(
    readOptions(options),
    () => Date.parse(testNow),
    () => undefined,
  )
  onTestFinished(() => school.database.close())
  return school
}
const file = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'school.db')
}
const all = (school: School, sql: string): Record<string, unknown>[] => school.database.prepare(sql).all()

/** The share that was built, each time that it was told. */
const shares: number[] = []
let school: School
beforeAll(() => {
  // It takes seconds to build.
  school = openSchool(
    readOptions({ scale: 'school' }),
    () => Date.parse(testNow),
    (share) => shares.push(share),
  )
})
afterAll(() => school.database.close())

test('a school has 720 current pupils in 24 classes, more than 680,000 marks and the shares of a primary school', () => {
  const current = school.roster.entries.filter((entry) => rollStateOn(entry, school.today()) === 'Current')
  expect(current).toHaveLength(720)
  expect(
    groupsOn(school.today(), school.ids, school.roster.entries)
      .filter(({ entity }) => entity['GroupType'] === 'PrimaryClass')
      .map(({ members }) => members.size),
  ).toEqual(Array.from({ length: 24 }, () => 30))
  // Whole school years up to yesterday: 700,000 at the beginning of September, 980,000 at the end of July.
  const marks = Number(all(school, 'SELECT count(*) AS n FROM mark')[0]?.['n'])
  expect(marks).toBeGreaterThan(900_000)
  expect(marks).toBeLessThan(980_000)
  const count = new Map(
    all(school, 'SELECT code, count(*) AS n FROM mark GROUP BY code').map((row) => [
      school.codes.byNumber(Number(row['code'])),
      Number(row['n']),
    ]),
  )
  const total = [...count.values()].reduce((sum, n) => sum + n, 0)
  const share = (matches: (code: string, category: string) => boolean): number =>
    [...count].reduce(
      (sum, [code, n]) => sum + (matches(code?.code ?? '', code?.category ?? '') ? n : 0),
      0,
    ) / total
  // service-facts: 94.2 % present in class, 95.6 % with all present codes.
  expect(share((code) => code === '/' || code === '\\')).toBeCloseTo(0.942, 1)
  expect(share((_code, category) => category === 'present')).toBeCloseTo(0.956, 1)
  expect(shares.at(-1)).toBe(1)
  expect(shares).toEqual([...shares].sort((one, other) => one - other))
})

test('the first class is the same at both scales', () => {
  const [one, other] = [open({ scale: 'class' }), school].map(({ roster, compose, today, marks }) => ({
    learners: roster.entries.slice(0, 30),
    identifiers: compose(identifiers, today()).slice(0, 30),
    marks: marks.range(1, 20514 * 2, 20528 * 2),
  }))
  expect(one).toEqual(other)
  expect(one?.learners[0]?.externalId).toBe(fixed.learner)
})

test('another seed is another class', () => {
  const classOf = (seed: number) => {
    const { compose, today } = open({ seed })
    return compose(identifiers, today())
  }
  expect(classOf(1)).toEqual(classOf(1))
  expect(classOf(1)).not.toEqual(classOf(2))
})

type Row = Readonly<Record<'half' | 'without' | 'least' | 'most' | 'code', unknown>>

test('minutes stand with a late code and with no other, and mornings have no code of afternoons', () => {
  const rows = all(
    school,
    `SELECT code, session % 2 AS half, count(*) - count(minutes_late) AS without, min(minutes_late) AS least, max(minutes_late) AS most
     FROM mark GROUP BY code, half`,
  )
  const found = rows.map((row) => ({ ...row, code: school.codes.byNumber(Number(row['code']))?.code }) as Row)
  expect(found.filter(({ least }) => least !== null)).toEqual([
    { half: 0, without: 0, least: 1, most: 25, code: 'L' },
    { half: 0, without: 0, least: 31, most: 90, code: 'U' },
  ])
  expect(found.filter(({ half, code }) => code === (half === 0 ? '\\' : '/'))).toEqual([])
})

test('a file keeps what was written, and is not built again', async () => {
  const db = file()
  const post = {
    headers: jsonBody,
    body: JSON.stringify({
      Attendee: { ExternalID: fixed.learner },
      Event: { ExternalID: fixed.morning },
      AttendanceCode: { ExternalID: fixed.present },
      RecordedBy: { ExternalID: fixed.unknown },
      Qualifier: { Comment: 'kept' },
    }),
  }
  const first = await startSandbox({ db })
  await first.json('POST', '/Attendance/V3/AttendanceRecords', post)
  const before = (await first.json('GET', '/_sandbox/effects')).body
  const again = await startSandbox({ db })
  expect((await again.json('GET', '/_sandbox/effects')).body).toEqual(before)
  await again.json('POST', '/Attendance/V3/AttendanceRecords', post)
  expect((await again.json('GET', '/_sandbox/effects')).body).toMatchObject([{ seq: 1 }, { seq: 2 }])
  const filter = encodeURIComponent(
    `Attendee/ExternalID eq ${fixed.learner} and Event/ExternalID eq ${fixed.morning}`,
  )
  expect((await again.json('GET', `/Attendance/V3/AttendanceRecords?$filter=${filter}`)).body).toMatchObject({
    value: [{ RecordedBy: { ExternalID: fixed.unknown }, Qualifier: { Comment: 'kept' } }],
  })
})

test('a file of another seed or scale is refused, and one whose seed was never finished', () => {
  const [db, unfinished] = [file(), file()]
  open({ db })
  openDatabase(unfinished, 'the class of seed 1').database.close()
  for (const options of [{ db, seed: 2 }, { db, scale: 'school' }, { db: unfinished }] as const)
    expect(() => createSandbox(options)).toThrow(expect.objectContaining({ code: 'ADP_USAGE' }))
})
