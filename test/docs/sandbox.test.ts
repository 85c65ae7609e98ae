import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import { loadValues } from '../../src/config/index.ts'
import { sandboxFileSchema } from '../../src/sandbox/index.ts'
import { fixed, startSandbox } from '../sandbox/start-sandbox.ts'

const text = await readFile(new URL('../../docs/sandbox.md', import.meta.url), 'utf8')
const run = promisify(execFile)

/** Returns the code blocks of a language. */
const blocks = (language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, block = '']) => block)
/** Returns the rows of the table whose heading row begins with a name. */
const rows = (name: string): string[][] => {
  const [, table = ''] =
    new RegExp(`^\\| ${name} \\|[^\\n]*\\n\\|[-|]+\\n((?:\\|[^\\n]*\\n)+)`, 'm').exec(text) ?? []
  return table
    .trim()
    .split('\n')
    .map((row) => row.slice(2, -2).split(' | '))
}
const names = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
const valuesOf = (body: unknown): Record<string, unknown>[] =>
  (body as { value: Record<string, unknown>[] }).value

test('every curl line in docs/sandbox.md works unchanged', async () => {
  const { port } = await startSandbox()
  const lines = blocks('sh')
    .flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
    .filter((line) => line.startsWith('curl'))
  expect(lines.length).toBeGreaterThan(4)
  for (const line of lines) {
    const { stdout } = await run('sh', ['-c', `${line.replace(':4010', `:${port}`)} -w '\n%{http_code}'`])
    expect([line, stdout.slice(-3)]).toEqual([line, expect.stringMatching(/^20[04]$/)])
  }
})

test('the table of options in docs/sandbox.md lists exactly the options that the sandbox has', () => {
  const listed = rows('option').flatMap(([cell]) => names(cell))
  expect(listed.sort()).toEqual(Object.keys(sandboxFileSchema.shape).sort())
})

test('the example of a configuration file in docs/sandbox.md is valid', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [example = ''] = blocks('yaml')
  await writeFile(join(folder, 'secret'), 'own-secret')
  await writeFile(
    join(folder, 'sandbox.yaml'),
    example.replace('{ env: APP_SECRET }', `{ file: "${folder}/secret" }`),
  )
  const options = await loadValues(join(folder, 'sandbox.yaml'), sandboxFileSchema)
  expect(options).toMatchObject({ keys: ['partner-key'], clients: [{ secret: 'own-secret' }] })
})

test('the example with two gateways in docs/sandbox.md is a valid configuration', async () => {
  const [example = ''] = blocks('yaml v2')
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'sandbox.yaml'), example)
  const options = await loadValues(join(folder, 'sandbox.yaml'), sandboxFileSchema)
  expect(options).toMatchObject({ keys: ['v3-key'], v2: { keys: ['v2-key'], callsPerSecond: 50 } })
})

test('the first class of the sandbox has as many learners and marks as docs/sandbox.md states', async () => {
  const { json } = await startSandbox({ now: '2026-08-31T10:00:00Z' })
  const [, onRoll = '', left = '', start = '', marks = ''] = rows('scale')[0] ?? []
  const learners = valuesOf((await json('GET', '/V3/LearnerIdentifiers')).body)
  const count = (state: string): number => learners.filter(({ OnRollState }) => OnRollState === state).length
  expect([`${count('Current')}, class 4B`, String(count('Leaver')), String(count('Future'))]).toEqual([
    onRoll,
    left,
    start,
  ])
  expect(marks).toContain('11,500')
  // Counts the marks of a completed school year.
  const path = '/V2/Attendance/AttendanceRecords/$count?$filter='
  let total = 0
  for (const { ExternalID } of learners) {
    const { body } = await json('GET', `${path}${encodeURIComponent(`Learner eq ${String(ExternalID)}`)}`)
    total += Number(body)
  }
  expect(Math.round(total / 500) * 500).toBe(11_500)
})

test.each(rows('session without a mark').map(([why = '', code]) => [why, names(code)[0]]))(
  'an unmarked session of the sandbox (%s) has the code %s, as docs/sandbox.md states',
  async (why, code) => {
    const { json } = await startSandbox()
    const day = {
      school: '2026-03-11',
      weekend: '2026-03-07',
      holiday: '2026-02-18',
      training: '2026-03-13',
      exceptional: '2026-03-12',
    }
    const [first = ''] = why.split(/[ :]/)
    const start = `${day[first as keyof typeof day]}T09:00:00Z`
    const filter = encodeURIComponent(
      `Attendee/ExternalID eq ${fixed.learner} and AttendableEventStart eq ${start}`,
    )
    const [row = {}] = valuesOf(
      (await json('GET', `/Attendance/V3/AttendanceRecords?$filter=${filter}`)).body,
    )
    const { ExternalID } = row['AttendanceCode'] as { ExternalID: string }
    const lookup = `ExternalID=${ExternalID},LookupType='AttendanceCode'`
    expect(
      (await json('GET', `/Attendance/V3/AttendanceLookups(${encodeURIComponent(lookup)})`)).body,
    ).toMatchObject({ Code: code })
    expect(row).toMatchObject({ RecordedBy: null, RecordedOn: null, Present: false, Absent: false })
  },
)

test('the lookups of the sandbox have exactly the types that docs/sandbox.md lists', async () => {
  const { json } = await startSandbox()
  const [, sentence = ''] = /^(LookupTypes: [^]*?)\. [A-Z]/m.exec(text) ?? []
  for (const part of sentence.split(';')) {
    const [types = '', set = ''] = part.split(/ in (?=\w+\.?$)/)
    const area = set.startsWith('Attendance') ? 'Attendance' : 'Learner'
    const all = valuesOf((await json('GET', `/V1/Lookup/${area}/${set.replace('.', '')}`)).body)
    expect([...new Set(all.map(({ LookupType }) => LookupType))].sort()).toEqual(names(types).sort())
    for (const type of names(types))
      expect((await json('GET', `/V1/Lookup/${area}/${type}/$count`)).body).toBe(
        all.filter(({ LookupType }) => LookupType === type).length,
      )
  }
})

test('the sandbox refuses reads without a range of dates in exactly the cases that docs/sandbox.md names', async () => {
  const { json } = await startSandbox()
  const one = `Attendee/ExternalID eq ${fixed.learner}`
  const other = `Attendee/ExternalID eq ${fixed.otherLearner}`
  const from = 'AttendableEventStart ge 2026-03-01T00:00:00Z'
  const status = async (filter: string): Promise<number> =>
    (await json('GET', `/Attendance/V3/AttendanceRecords?$top=1&$filter=${encodeURIComponent(filter)}`))
      .status
  const answers = [
    [one, 200],
    [`${one} and ${from}`, 200],
    [`Event/ExternalID eq ${fixed.morning}`, 200],
    [`ExternalID eq ${fixed.morning}`, 200],
    [`${one} or ${other}`, 400],
    ['Present eq true', 400],
    [from, 400],
    ['AttendableEventStart ge 2026-03-01', 400],
    [`${from} and AttendableEventStart le 2026-05-30T00:00:00Z`, 200],
    [`${from} and AttendableEventStart le 2026-05-30T00:00:01Z`, 400],
  ] as const
  for (const [filter, expected] of answers) expect([filter, await status(filter)]).toEqual([filter, expected])
  for (const path of [
    'AttendanceRecords/SIMS.Changes(startDate=2020-01-01)?$top=1',
    'StatutoryAttendanceSessions?$top=1',
    'AttendanceLookups',
  ])
    expect((await json('GET', `/Attendance/V3/${path}`)).status).toBe(200)
})
