import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createSandbox } from '../../src/sandbox/index.ts'
import { rollStateOn } from '../../src/sandbox/roll.ts'
import { groupsOn } from '../../src/sandbox/seed/documents/groups.ts'
import { openSchool } from '../../src/sandbox/open-school.ts'
import { readOptions } from '../../src/sandbox/options.ts'
import type { SandboxOptions } from '../../src/sandbox/options.ts'
import type { School } from '../../src/sandbox/school.ts'
import { fixed, jsonBody, startSandbox, testNow } from './start-sandbox.ts'

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
    groupsOn(school.today(), school.ids, school.pupils)
      .filter(({ type }) => type === 'PrimaryClass')
      .map(({ members }) => members.length),
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
  const [one, other] = [open({ scale: 'class' }), school].map(({ roster, entities, marks }) => ({
    learners: roster.entries.slice(0, 30),
    identifiers: entities.all('LearnerIdentifiers').slice(0, 30),
    marks: marks.range(1, 20514 * 2, 20528 * 2),
  }))
  expect(one).toEqual(other)
  expect(one?.learners[0]?.externalId).toBe(fixed.learner)
})

test('another seed is another class', () => {
  const names = [1, 2].map((seed) =>
    open({ seed })
      .entities.all('LearnerIdentifiers')
      .map(({ body }) => body),
  )
  expect(names[0]).toEqual(
    open({ seed: 1 })
      .entities.all('LearnerIdentifiers')
      .map(({ body }) => body),
  )
  expect(names[0]).not.toEqual(names[1])
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
  const filter = encodeURIComponent(
    `Attendee/ExternalID eq ${fixed.learner} and Event/ExternalID eq ${fixed.morning}`,
  )
  expect((await again.json('GET', `/Attendance/V3/AttendanceRecords?$filter=${filter}`)).body).toMatchObject({
    value: [{ RecordedBy: { ExternalID: fixed.unknown }, Qualifier: { Comment: 'kept' } }],
  })
})

test('a file of another seed is refused', () => {
  const db = file()
  open({ db })
  expect(() => createSandbox({ db, seed: 2 })).toThrow(expect.objectContaining({ code: 'ADP_USAGE' }))
})
