import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { systemClock } from '../../../src/clock.ts'
import type { RunDocument } from '../../../src/compare/run-document.ts'
import { runComparison, type RunResult } from '../../../src/compare/run/run-comparison.ts'
import { createWindowSource } from '../../../src/compare/run/window-source.ts'
import { DAY_MS } from '../../../src/compare/run/windows.ts'
import { AdapterError } from '../../../src/errors.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { type FakeSide, fakeSide, guid, type Mark, markOf } from './fake-sides.ts'

const JANUARY = Date.parse('2026-01-01T00:00:00Z')
const days = Array.from({ length: 30 }, (_, index) => index + 1)
/** One mark for each of ten learners on each of thirty days. */
const school = days.flatMap((day) => Array.from({ length: 10 }, (_, learner) => markOf(learner, day)))

type Selection = Parameters<typeof createWindowSource>[0]

interface Setup {
  readonly v2: FakeSide
  readonly v3: FakeSide
  readonly selection?: Partial<Pick<Selection, 'toMs' | 'learners' | 'noise' | 'registrations'>>
  readonly rows?: NonNullable<Selection['rows']>
}

async function run({ v2, v3, selection, rows }: Setup): Promise<RunResult> {
  const { noise = false } = selection ?? {}
  const source = createWindowSource({
    sides: { marks: { v2, v3 }, registrations: { v2, v3 } },
    ...{ fromMs: JANUARY, toMs: JANUARY + 30 * DAY_MS, learners: undefined, registrations: false, noise },
    ...{ rules: undefined, clock: systemClock, pauseMs: 0 },
    ...(rows === undefined ? {} : { rows }),
    ...selection,
  })
  return runComparison(
    {
      source,
      header: { kind: 'reads', partner: 'acme', from: '2026-01-01', to: '2026-01-30', noise },
      folder: await makeFolder(),
      clock: systemClock,
      onProgress: () => undefined,
    },
    new AbortController().signal,
  )
}

/** Returns a document without the members that are different in each run. */
function contentOf(document: RunDocument): object {
  return { ...document, run: '', startedAt: '', endedAt: '' }
}

/** Creates a service with the marks of the school, of which some are changed. */
const schoolWith = (changes: readonly Mark[], options: Parameters<typeof fakeSide>[1] = {}): FakeSide =>
  fakeSide(
    () => school.map((mark) => changes.find(({ ExternalID }) => ExternalID === mark.ExternalID) ?? mark),
    options,
  )
const late = markOf(3, 5, { Comment: 'late bus' })

const gone = (): never => {
  throw new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'The service is not available.')
}
/** Makes the service fail `times` times for the window that begins on a day of January. */
const goneOn =
  (day: string, times = Infinity) =>
  (_call: number, query: string): void => {
    if (query.includes(`ge 2026-01-${day}T`) && times-- > 0) gone()
  }

test('a compare run reads consecutive windows, and finds all records equal if the two services are equal', async () => {
  const [v2, v3] = [schoolWith([]), schoolWith([])]
  const { document, kind, path } = await run({ v2, v3 })
  expect(kind).toBe('done')
  expect(contentOf(document)).toMatchObject({
    ...{ schema: 1, kind: 'reads', partner: 'acme', from: '2026-01-01', to: '2026-01-30', complete: true },
    ...{ offered: 300, compared: 300, dropped: 0, skipped: 0, differences: [], askedAgain: 0 },
    verdicts: { same: 300, equivalent: 0, differs: 0, onlyV2: 0, onlyV3: 0, unknown: 0 },
    kinds: [{ name: 'marks' }],
    codeClasses: [{ name: 'code:present' }],
  })
  expect(document.days).toHaveLength(30)
  expect(v2.queries).toEqual([
    '$filter=AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart lt 2026-01-08T00:00:00Z',
    '$filter=AttendableEventStart ge 2026-01-08T00:00:00Z and AttendableEventStart lt 2026-01-22T00:00:00Z',
    '$filter=AttendableEventStart ge 2026-01-22T00:00:00Z and AttendableEventStart lt 2026-01-31T00:00:00Z',
  ])
  expect(v3.queries).toEqual(v2.queries)
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(document)
})

test('a compare run reads a window again if a record differs, and counts only records that differ in both reads', async () => {
  const v3 = schoolWith([late])
  const { document } = await run({ v2: schoolWith([]), v3 })
  expect(document).toMatchObject({
    verdicts: { same: 299, differs: 1 },
    differences: [{ path: 'Comment', count: 1 }],
    askedAgain: 1,
  })
  expect(v3.queries).toHaveLength(4)
  expect(v3.queries[1]).toBe(v3.queries[0])
})

test('a compare run counts no difference if a mark changed between the reads of V3 and V2', async () => {
  let now: readonly Mark[] = school
  const v3 = fakeSide(() => now)
  // V3 is read before the change and V2 after it.
  const v2 = fakeSide(() => now, {
    before: async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      now = school.map((mark) => (mark.ExternalID === late.ExternalID ? late : mark))
    },
  })
  const { document } = await run({ v2, v3 })
  expect(document).toMatchObject({ verdicts: { same: 300, differs: 0 }, askedAgain: 1 })
})

test.each([
  ['repeats the second read of a window if the read fails twice', 2, { same: 299, differs: 1, unknown: 0 }],
  [
    'returns "unknown" for a record if the second read of its window fails three times',
    3,
    { same: 299, differs: 0, unknown: 1 },
  ],
])('a compare run %s', async (_name, times, verdicts) => {
  const v3 = schoolWith([late], {
    before: (call) => {
      if (call > 1 && call <= 1 + times)
        throw new AdapterError('ADP_UPSTREAM_PROTOCOL', 'The answer breaks off.')
    },
  })
  const { document } = await run({ v2: schoolWith([]), v3 })
  expect(document).toMatchObject({ compared: 300, verdicts, askedAgain: 1 })
})

test('a compare run ignores fields that differ between two reads of V2, and names them', async () => {
  let calls = 0
  const v2 = fakeSide(
    () => school.map((mark) => (mark.Learner === guid(2, 4) ? { ...mark, Comment: `read ${calls}` } : mark)),
    { before: () => void (calls += 1) },
  )
  const v3 = schoolWith([markOf(7, 7, { Comment: 'only here' })])
  const { document } = await run({ v2, v3, selection: { noise: true } })
  expect(document).toMatchObject({
    verdicts: { same: 299, differs: 1 },
    differences: [{ path: 'Comment', count: 1 }],
    noise: { measured: true, records: 30, differences: [{ path: 'Comment', count: 30 }] },
  })
})

test('a compare run over lists of learners reads one list after another', async () => {
  const ids = Array.from({ length: 60 }, (_, learner) => guid(2, learner))
  const lists = [ids.slice(0, 30), ids.slice(30)]
  const [v2, v3] = [schoolWith([]), schoolWith([])]
  const { document } = await run({ v2, v3, selection: { learners: lists } })
  expect(document).toMatchObject({ compared: 300, verdicts: { same: 300 } })
  // The second list takes fewer reads, because it begins with the window length that suited the first list.
  expect(v2.queries).toHaveLength(5)
  expect(v2.queries[0]).toContain(`Learner eq ${guid(2, 29)})`)
  expect(v2.queries[3]).toContain(`(Learner eq ${guid(2, 30)} or `)
})

test('a compare run counts the records of a window as unknown if its read fails, and compares the other windows', async () => {
  const v2 = schoolWith([])
  const v3 = schoolWith([], { before: goneOn('01') })
  const { document, failures } = await run({ v2, v3 })
  expect(document).toMatchObject({
    complete: false,
    compared: 300,
    verdicts: { same: 230, unknown: 70, onlyV2: 0 },
  })
  expect(failures).toMatchObject([{ side: 'V3', window: { fromMs: JANUARY, toMs: JANUARY + 7 * DAY_MS } }])
})

test('a compare run reads each failed window once more at the end', async () => {
  const v3 = schoolWith([], { before: goneOn('01', 1) })
  const { document } = await run({ v2: schoolWith([]), v3 })
  expect(document).toMatchObject({ complete: true, verdicts: { same: 300, unknown: 0 } })
})

test('a compare run ends early if several consecutive windows fail', async () => {
  const v3 = schoolWith([], { before: gone })
  const toMs = JANUARY + 3_650 * DAY_MS
  const { kind, document } = await run({ v2: schoolWith([]), v3, selection: { toMs } })
  expect(kind).toBe('failing')
  expect(document.complete).toBe(false)
  expect(v3.queries.length).toBeLessThan(6)
})

test('a compare run divides a window with too many rows into shorter windows, down to one hour', async () => {
  const marks = Array.from({ length: 60 }, (_, learner) =>
    markOf(learner, 1 + (learner % 2), {
      AttendableEventStart: `2026-01-01T${learner % 2 === 0 ? '09' : '14'}:00:00Z`,
    }),
  )
  const sides = { v2: fakeSide(() => marks), v3: fakeSide(() => marks) }
  const { document } = await run({ ...sides, rows: { max: 30, target: 20 } })
  expect(document).toMatchObject({ complete: true, compared: 60, verdicts: { same: 60 } })
  // One more row makes the hour exceed the limit. The run then leaves out the hour and reports the hour as failed.
  const more = [...marks, markOf(60, 1, { AttendableEventStart: '2026-01-01T09:00:00Z' })]
  const other = { v2: fakeSide(() => more), v3: fakeSide(() => more) }
  const result = await run({ ...other, rows: { max: 30, target: 20 } })
  expect(result.document).toMatchObject({ complete: false, compared: 30 })
  expect(result.failures).toMatchObject([{ side: 'V2', cause: { code: 'ADP_UPSTREAM_PROTOCOL' } }])
})
