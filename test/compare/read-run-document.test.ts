import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { readRunDocument } from '../../src/compare/run-document.ts'
import { AdapterError } from '../../src/errors.ts'
import { runs } from '../support/long-run.ts'
import { writeReport } from '../../src/compare/report/write-report.ts'
import { emptyRun, hostileRun, liveRun, schoolRun, termRun } from './report/sample-runs.ts'

test.each([emptyRun, termRun(), schoolRun(), liveRun(), hostileRun()])(
  'reads what was written, document %#',
  (document) => {
    expect(readRunDocument(JSON.stringify(document), 'a run')).toEqual(document)
  },
)

test('leaves out members that the form does not have', () => {
  const text = `{"__proto__":{"polluted":1},"rows":[{"Comment":"late"}],${JSON.stringify(emptyRun).slice(1)}`
  expect(readRunDocument(text, 'a run')).toEqual(emptyRun)
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
})

const json = (given: object): string => JSON.stringify({ ...emptyRun, ...given })

test.each([
  ['', 'a.json cannot be read: it is not valid JSON.'],
  [
    JSON.stringify(termRun()).slice(0, 2000),
    'a.json cannot be read: it is not valid JSON. Was it cut off, or is the run still writing it?',
  ],
  ['[]', 'a.json cannot be read: it is not the document of a comparison run.'],
  ['{"schema":1}', 'a.json cannot be read: it is not the document of a comparison run.'],
  [
    json({ schema: 2 }),
    'a.json cannot be read: it has version 2 of the form, this Markbridge reads version 1. Use the newer one.',
  ],
  [
    writeReport(termRun(), 'json', { exact: false }),
    'a.json cannot be read: it is a report, whose counts may be rounded; reports are made from the file of the run.',
  ],
  [json({ compared: -1 }), 'a.json cannot be read: compared: Too small'],
  [
    json({ compared: 1 }),
    'a.json cannot be read: "offered" is not the sum of "compared", "dropped" and "skipped".',
  ],
  [json({ compared: 1, offered: 1 }), 'a.json cannot be read: the six verdicts do not add up to "compared".'],
  [json({ offered: '<5' }), 'offered: Invalid input: expected number'],
  [json({ from: '2026-02-30' }), 'from: Invalid ISO date'],
  [json({ startedAt: 'yesterday' }), 'startedAt: Invalid ISO datetime'],
  [json({ run: 'x'.repeat(3000) }), 'run: Too big'],
  [json({ kind: 'else' }), 'kind: Invalid option'],
  [json({ days: [{ name: 'a', verdicts: {} }] }), 'days.0.verdicts.same: Invalid input'],
  [
    json({ differences: [{ path: 'Comment', kind: 'gone', v2Class: '', v3Class: '', count: 1 }] }),
    'differences.0.kind: Invalid option',
  ],
])('refuses %#: %s', (text, message) => {
  expect(() => readRunDocument(text, 'a.json')).toThrow(
    expect.objectContaining({
      code: 'ADP_USAGE',
      message: expect.stringContaining(message) as string,
    }) as Error,
  )
})

test('reads or refuses any JSON, and quotes none of it', () => {
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
