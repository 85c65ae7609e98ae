import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { readRunDocument } from '../../src/compare/run-document.ts'
import { AdapterError } from '../../src/errors.ts'
import { runs } from '../support/long-run.ts'
import { writeReport } from '../../src/compare/report/write-report.ts'
import { emptyRun, hostileRun, liveRun, schoolRun, termRun } from './report/sample-runs.ts'

test.each([emptyRun, termRun(), schoolRun(), liveRun(), hostileRun()])(
  'readRunDocument returns a written document unchanged (sample %#)',
  (document) => {
    expect(readRunDocument(JSON.stringify(document), 'a run')).toEqual(document)
  },
)

test('readRunDocument drops members that the format does not define', () => {
  const text = `{"__proto__":{"polluted":1},"rows":[{"Comment":"late"}],${JSON.stringify(emptyRun).slice(1)}`
  expect(readRunDocument(text, 'a run')).toEqual(emptyRun)
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

const json = (given: object): string => JSON.stringify({ ...emptyRun, ...given })

test.each([
  ['an empty file', '', 'not valid JSON'],
  ['a truncated file', JSON.stringify(termRun()).slice(0, 2000), 'not valid JSON'],
  ['a list', '[]', 'not the document'],
  ['a document without verdicts', '{"schema":1}', 'not the document'],
  ['version 2', json({ schema: 2 }), 'version 2'],
  ['a report', writeReport(termRun(), 'json', { exact: false }), 'a report'],
  ['a negative count', json({ compared: -1 }), 'compared: Too small'],
  ['a sum that does not match "offered"', json({ compared: 1 }), '"offered"'],
  ['verdicts that do not match "compared"', json({ compared: 1, offered: 1 }), 'six verdicts'],
  ['a count that is text', json({ offered: '<5' }), 'offered: Invalid input: expected number'],
  ['a day that does not exist', json({ from: '2026-02-30' }), 'from: Invalid ISO date'],
  ['a time that is not ISO 8601', json({ startedAt: 'yesterday' }), 'startedAt: Invalid ISO datetime'],
  ['an overlong name', json({ run: 'x'.repeat(3000) }), 'run: Too big'],
  ['an unknown kind of run', json({ kind: 'else' }), 'kind: Invalid option'],
  [
    'a group without counts',
    json({ days: [{ name: 'a', verdicts: {} }] }),
    'days.0.verdicts.same: Invalid input',
  ],
  [
    'an unknown kind of difference',
    json({ differences: [{ path: 'Comment', kind: 'gone', v2Class: '', v3Class: '', count: 1 }] }),
    'differences.0.kind: Invalid option',
  ],
])('readRunDocument refuses %s and names the cause', (_case, text, message) => {
  expect(() => readRunDocument(text, 'a.json')).toThrow(
    expect.objectContaining({
      code: 'ADP_USAGE',
      message: expect.stringContaining(message) as string,
    }) as Error,
  )
})

test('readRunDocument accepts or refuses any JSON, and never quotes the JSON in its error', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(30), (text, at) => {
      const names = Object.keys(emptyRun)
      const changed = `{"secret-marker":1,${JSON.stringify(emptyRun).slice(1, -1)},"${names[at % names.length] ?? ''}":${text}}`
      try {
        readRunDocument(changed, 'a run')
      } catch (cause) {
        expect(cause).toBeInstanceOf(AdapterError)
        expect((cause as AdapterError).message).not.toContain('secret-marker')
        expect((cause as AdapterError).message.length).toBeLessThan(400)
      }
    }),
    { numRuns: runs(300, 20_000) },
  )
})
