import { readFileSync } from 'node:fs'

import Ajv from 'ajv'
import { describe, expect, it } from 'vitest'

import { explain } from '../../../src/compare/report/explanations.ts'
import { createReport, type ReportOptions } from '../../../src/compare/report/report.ts'
import { type ReportFormat, reportFormats, writeReport } from '../../../src/compare/report/write-report.ts'
import { readRunDocument, type RunDocument } from '../../../src/compare/run-document.ts'
import {
  counts,
  emptyRun,
  hostileRun,
  hostileTexts,
  liveRun,
  manyClassesRun,
  samples,
  termRun,
} from './sample-runs.ts'

const report = (document: RunDocument, format: ReportFormat, exact = false): string =>
  writeReport(document, format, { exact })

const outcomes: Readonly<Record<keyof typeof samples, readonly string[]>> = {
  empty: ['inconclusive', 'nothingCompared'],
  ready: ['ready'],
  term: ['differs', 'expiredRules'],
  school: ['differs'],
  stopped: ['inconclusive', 'incomplete', 'tooFewCompared', 'unknown'],
  live: ['differs', 'unknown'],
  manyClasses: ['differs'],
  hostile: ['differs', 'expiredRules'],
}

/** Returns all numbers of a document that count records. */
function countsOf(value: unknown, name = ''): number[] {
  if (Array.isArray(value)) return value.flatMap((one) => countsOf(one, name))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([member, one]) => countsOf(one, member))
  return name === 'schema' || name === 'upToMs' || typeof value !== 'number' ? [] : [value]
}

describe('createReport', () => {
  it.each(Object.entries(samples))(
    'rounds every count of the run "%s" to a multiple of 5, but no count above 0 to 0',
    (_, document) => {
      const [exact, published] = [true, false].map((own) =>
        countsOf(createReport(document, { exact: own }).run),
      )
      expect(published?.filter((count) => count % 5 !== 0)).toEqual([])
      const isNear = (count: number, index: number): boolean => {
        const shown = published?.[index] ?? NaN
        return count === 0 ? shown === 0 : Math.abs(shown - count) <= (count < 5 ? 4 : 2) && shown > 0
      }
      expect(exact?.every(isNear)).toBe(true)
    },
  )

  it.each(Object.entries(samples))(
    'contains the exact counts of the run "%s" if the option exact is set',
    (name, document) => {
      const { run, outcome, doubts } = createReport(document, { exact: true })
      expect([outcome, ...doubts]).toEqual(outcomes[name as keyof typeof samples])
      if (name !== 'hostile') expect(run).toEqual(document)
    },
  )

  it('never shows more differing than compared records, even if the rounded counts add up to more', () => {
    const verdicts = counts({ differs: 3, onlyV2: 3, onlyV3: 1 })
    const { headline } = createReport({ ...emptyRun, offered: 7, compared: 7, verdicts }, { exact: false })
    expect(headline).toContain('for 5 of 5 compared records (100 %)')
  })
})

it.each([
  [0, /^(?!.*AttendanceHistorys)/],
  [1, /One record has a history .*AttendanceHistorys/],
  [1_200, /1,200 records have histories .*AttendanceHistorys/],
])('createReport states in the headline that the configuration omits the histories of %i records', (count, headline) => {
  const equivalences = [{ rule: 'history-left-out', path: 'AttendanceHistorys', count }].slice(0, count)
  const compared = { offered: 1_200, compared: 1_200, verdicts: counts({ equivalent: 1_200 }) }
  expect(createReport({ ...emptyRun, ...compared, equivalences }, { exact: true }).headline).toMatch(headline)
}) // prettier-ignore

describe('the JSON report', () => {
  const schema = JSON.parse(readFileSync('docs/compare-report.schema.json', 'utf8')) as {
    definitions: object
  }
  const ajv = new Ajv({ allErrors: true })
  const validate = ajv.compile(schema)
  const validateRun = ajv.compile({
    ...schema,
    allOf: [{ $ref: '#/definitions/run' }],
    properties: {},
    required: [],
  })

  it.each(Object.entries(samples))(
    'matches the published schema for the run "%s", like the document of the run',
    (_, document) => {
      for (const exact of [false, true]) {
        validate(JSON.parse(report(document, 'json', exact)))
        expect(validate.errors).toBeNull()
      }
      validateRun(document)
      expect(validateRun.errors).toBeNull()
    },
  )

  it.each(['verdicts', 'offered', 'outcome', 'days', 'noise'])(
    'violates the published schema if the member "%s" is missing',
    (name) => {
      const document = Object.entries(JSON.parse(report(termRun(), 'json')) as object)
      expect(validate(Object.fromEntries(document.filter(([member]) => member !== name)))).toBe(false)
    },
  )

  it('violates the published schema if a count is malformed', () => {
    for (const count of ['<6', '12', -1, 1.5, null, '>=x', '>=-1']) {
      const document = JSON.parse(report(termRun(), 'json')) as Record<string, unknown>
      expect(validate({ ...document, askedAgain: count })).toBe(false)
    }
  })
})

describe('the CSV report', () => {
  it('has no cell that a spreadsheet would execute as a formula', () => {
    const text = report(hostileRun(), 'csv')
    const cells = text
      .slice(1)
      .split('\r\n')
      .flatMap((line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)])
      .map(([, quoted, plain]) => quoted ?? plain ?? '')
    expect(cells.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([])
    expect(text).toContain("'=HYPERLINK")
  })

  it('has one line per count', () => {
    const text = report(termRun(), 'csv')
    const lines = text.trimEnd().split('\r\n')
    expect(lines[0]).toBe('\ufeffsection,name,path,kind,v2Class,v3Class,verdict,count,note')
    const { differences, equivalences, days, kinds, codeClasses } = termRun()
    const rows = 1 + 6 + 6 + differences.length + equivalences.length + 1 + 2
    expect(lines).toHaveLength(1 + rows + 6 * (days.length + kinds.length + codeClasses.length))
    expect(lines).toContain(
      'difference,,RecordedOn,value,time,time:+3600s,,4405,RecordedOn is shifted by an hour',
    )
    expect(lines).toContain(
      'difference,,MinutesLate,value,number:1-5,number:6-15,,5,Minutes of lateness differ',
    )
  })
})

describe('the JUnit report', () => {
  it('has a failed test case for each class of differences and for each expired rule', () => {
    const xml = report(termRun(), 'junit')
    // The 15 failures are twelve classes of differences, the records that only V2 has, the records that only V3 has, and one expired rule.
    expect(xml).toMatch(
      /<testsuites name="compare run-[^"]*" tests="\d+" failures="15" errors="0" skipped="0">/,
    )
    expect(xml).toContain('<failure message="RecordedOn is shifted by an hour: 4,405 records" type="value">')
  })

  it.each([
    ['empty', 'failures="0" errors="1"', 'type="nothingCompared"'],
    ['stopped', 'failures="0" errors="1"', 'type="incomplete,tooFewCompared,unknown"'],
    ['ready', 'failures="0" errors="0"', ''],
  ] as const)(
    'has an error for an inconclusive run and no error for a ready run: %s',
    (name, totals, error) => {
      const xml = report(samples[name], 'junit')
      expect(xml).toContain(totals)
      expect(xml).toContain(error)
    },
  )

  it('escapes hostile text', () => {
    const xml = report(hostileRun(), 'junit')
    expect(xml).not.toMatch(/<(?:script|img|injected|!--)/)
    expect(xml).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u202e]/)
  })
})

describe('the HTML report', () => {
  it('contains no element, attribute or address that a hostile text in the run injected', () => {
    const page = report(hostileRun(), 'html')
    expect(page).not.toMatch(/<(?:script|img|iframe|link|object|injected|a )/i)
    const tags = (page.match(/<[a-z][^>]*>/gi) ?? []).map((tag) => tag.replaceAll(/"[^"]*"/g, '""'))
    expect(tags.filter((tag) => /\s(?:on\w+|style|src|href)\s*=/i.test(tag))).toEqual([])
    expect(page.match(/<\/style>/g)).toHaveLength(1)
    expect(page).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202e]/)
    for (const text of hostileTexts.slice(0, 4)) expect(page).not.toContain(text)
  })

  it.each(Object.entries(samples))('shows the outcome of the run "%s" in its heading', (_, document) => {
    const [, heading = ''] = /<h1>(.*?)<\/h1>/.exec(report(document, 'html')) ?? []
    const { outcome } = JSON.parse(report(document, 'json')) as { outcome: string }
    expect(heading.toLowerCase()).toBe(outcome)
  })

  it('lists differences in attendance before minutes, comments and form, even if their counts are lower', () => {
    const page = report(termRun(), 'html')
    const [, list = ''] = /<ul class="findings">(.*?)<\/ul>/s.exec(page) ?? []
    expect([...list.matchAll(/<strong>(.*?)<\/strong>/g)].map(([, text]) => text)).toEqual([
      'Attendance codes change: 45',
      'Records are on one side only: 70',
      'Minutes of lateness change: 5',
      'Comments change: 95',
      'Other details differ: 4,465',
      'Only the form differs: 100',
    ])
    expect(page.indexOf('The attendance code differs')).toBeLessThan(page.indexOf('RecordedOn is shifted'))
  })

  it('shows the addresses of both services, and the period, the chart by hour and the delays of a live run', () => {
    expect(report(termRun(), 'html')).toMatch(/<dt>V2<\/dt>\s*<dd>https:\/\/v2\.school\.example\/<\/dd>/)
    const live = report(samples.live, 'html')
    expect(live).toContain('5 Jan 2026, 08:12 UTC – 27 Mar 2026, 16:04 UTC')
    expect(live).toContain('08:00')
    expect(live).toContain('Visible by then')
  })

  it('stays under 400,000 characters for a run with a thousand classes', () => {
    expect(report(manyClassesRun(), 'html').length).toBeLessThan(400_000)
  })
})

describe('writeReport', () => {
  it.each(reportFormats)(
    'drops members that the run format does not define when it writes the format %s',
    (format) => {
      const marker = 'a-value-of-a-learner'
      const document = Object.assign(termRun(), { Learner: marker, rows: [{ Comment: marker }] })
      const hidden = {
        ...document,
        differences: document.differences.map((one) => ({ ...one, sample: marker })),
      }
      expect(report(readRunDocument(JSON.stringify(hidden), 'a run'), format)).not.toContain(marker)
    },
  )
})

describe('explain', () => {
  it.each([
    ['RecordedOn', 'value', 'time', 'time:+3600s', 'RecordedOn is shifted by an hour'],
    ['RecordedOn', 'value', 'time', 'time:+<1s', 'Fractions of a second are cut in RecordedOn'],
    ['Comment', 'value', 'length:51-100', 'length:21-50 cut', 'Comments are cut'],
    ['Comment', 'value', 'length:10-20', 'length:10-20 trimmed', 'Comments differ in form only'],
    ['Comment', 'null', 'null', 'length:0', 'An absent comment has another form'],
    [
      'SchoolAttendanceCode',
      'value',
      'code:present',
      'code:absent',
      'The attendance code differs (SchoolAttendanceCode)',
    ],
    ['MinutesLate', 'null', 'null', 'number:0', 'MinutesLate is null on one side and 0 on the other'],
    ['MinutesLate', 'null', 'null', 'number:6-15', 'Minutes of lateness are on one side only'],
    ['ExternalID', 'value', 'guid', 'guid', 'The same mark has a different id'],
    ['(row)', 'onlyV2', '', '', 'Records that V3 does not have'],
    ['AttendanceHistorys', 'missing', 'element', 'missing', 'Histories of marks differ'],
    [
      'reply/layout',
      'value',
      'layout:nested',
      'layout:flat',
      'The form of the batch reply differs (reply/layout)',
    ],
    [
      'errors/Message',
      'value',
      'text:other',
      'text:other',
      'Errors have different codes or texts (errors/Message)',
    ],
    ['Enrolments/LeavingDate', 'null', 'time', 'null', 'Enrolments/LeavingDate is null on one side'],
    ['Enrolments/Type', 'value', 'length:1-9', 'length:1-9', 'The value of Enrolments/Type differs'],
  ] as const)(
    'explains a difference in %s of kind "%s" between "%s" and "%s" as: %s',
    (path, kind, v2Class, v3Class, title) => {
      expect(explain({ path, kind, v2Class, v3Class }).title).toBe(title)
    },
  )
})

describe('the report of live comparison', () => {
  const alike: RunDocument = { ...liveRun(), verdicts: { ...liveRun().verdicts, differs: 0, onlyV2: 0, onlyV3: 0 } }
  const few = { verdict: 'inconclusive', missing: ['12 of 598 learner-days were compared with V2.'] }
  const outcomeWith = (document: RunDocument, advice?: ReportOptions['advice']): string =>
    createReport(document, { exact: true, advice }).outcome

  it('has the outcome "ready" exactly when the advice on the next step is "ready"', () => {
    const ready = { verdict: 'ready', missing: [] }
    expect([ready, few, undefined].map((advice) => outcomeWith(alike, advice))).toEqual(['ready', 'inconclusive', 'inconclusive'])
    expect([ready, few, undefined].map((advice) => outcomeWith(liveRun(), advice))).toEqual(['ready', 'differs', 'differs'])
  })

  it('lists the unmet conditions of the advice', () => {
    expect(createReport(alike, { exact: true, advice: few }).limits).toEqual(
      expect.arrayContaining([expect.stringContaining('"inconclusive"'), ...few.missing]),
    )
  })
}) // prettier-ignore
