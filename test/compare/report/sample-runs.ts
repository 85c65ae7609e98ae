import type { CountedGroup, RunDocument } from '../../../src/compare/run-document.ts'
import { addVerdicts } from '../../../src/compare/tally.ts'
import type { VerdictCounts } from '../../../src/compare/verdict.ts'

export const counts = (given: Partial<VerdictCounts>): VerdictCounts => addVerdicts([given])

const none = counts({})

/** A run in which nothing was compared. */
export const emptyRun: RunDocument = {
  schema: 1,
  run: 'run-20260327-160000-9f3c',
  kind: 'reads',
  partner: 'acme',
  startedAt: '2026-03-27T16:00:00Z',
  endedAt: '2026-03-27T16:00:02Z',
  from: '2026-01-05',
  to: '2026-03-27',
  complete: true,
  offered: 0,
  compared: 0,
  dropped: 0,
  skipped: 0,
  verdicts: none,
  differences: [],
  equivalences: [],
  noise: { measured: false, records: 0, differences: [] },
  ownRules: [],
  kinds: [],
  codeClasses: [],
  days: [],
  delays: [],
  askedAgain: 0,
}

/** The school days from 2026-01-05 on. */
export function schoolDays(count: number): readonly string[] {
  const days: string[] = []
  for (let time = Date.UTC(2026, 0, 5); days.length < count; time += 86_400_000) {
    const day = new Date(time)
    if (day.getUTCDay() % 6 !== 0) days.push(day.toISOString().slice(0, 10))
  }
  return days
}

/** Whole numbers that follow from the seed (a linear congruence). */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

const amount = (verdicts: VerdictCounts): number =>
  Object.values(verdicts).reduce((sum, count) => sum + count, 0)

/** Splits verdicts into named shares; the last one has the rest. */
function split(whole: VerdictCounts, shares: readonly (readonly [string, number])[]): CountedGroup[] {
  const left = { ...whole } as Record<keyof VerdictCounts, number>
  return shares.map(([name, share], index) => {
    const part = { ...none } as Record<keyof VerdictCounts, number>
    for (const verdict of Object.keys(part) as (keyof VerdictCounts)[]) {
      const taken = index === shares.length - 1 ? left[verdict] : Math.round(whole[verdict] * share)
      part[verdict] = Math.min(taken, left[verdict])
      left[verdict] -= part[verdict]
    }
    return { name, verdicts: part }
  })
}

const codeShares = [
  ['code:present', 0.9],
  ['code:absent', 0.08],
  ['code:neither', 0.02],
] as const
const kindShares = [
  ['marks', 0.97],
  ['registrations', 0.03],
] as const

/** A run over days with all that belongs to it; `dayOf` gives the verdicts of each. */
function runOver(
  days: readonly string[],
  dayOf: (index: number) => VerdictCounts,
  given: Partial<RunDocument>,
): RunDocument {
  const groups = days.map((name, index) => ({ name, verdicts: dayOf(index) }))
  const verdicts = addVerdicts(groups.map((group) => group.verdicts))
  const { dropped = 0, skipped = 0 } = given
  return {
    ...emptyRun,
    from: days[0] ?? emptyRun.from,
    to: days.at(-1) ?? emptyRun.to,
    endedAt: '2026-03-27T16:04:31Z',
    compared: amount(verdicts),
    offered: amount(verdicts) + dropped + skipped,
    verdicts,
    days: groups,
    kinds: split(verdicts, kindShares),
    codeClasses: split(verdicts, codeShares),
    noise: { measured: true, records: 0, differences: [] },
    ...given,
  }
}

const equivalences = [
  { rule: 'instant-form', path: 'RecordedOn', count: 41_206 },
  { rule: 'guid-case', path: 'Learner', count: 8_114 },
  { rule: 'missing-null', path: 'Comment', count: 2_950 },
  { rule: 'history-left-out', path: 'AttendanceHistorys', count: 960 },
]

type Difference = RunDocument['differences'][number]

const shape = (path: string, kind: Difference['kind'], v2Class: string, v3Class: string) => ({
  ...{ path, kind, v2Class, v3Class },
})

/** A term of a school with the differences that a first run finds: summer time, cut comments, a swapped code, missing rows. */
export function termRun(): RunDocument {
  const next = numbersFrom(7)
  const days = schoolDays(58)
  const document = runOver(
    days,
    (index) => {
      const differs = index >= 51 ? 620 + next(60) : next(9) + (index % 17 === 4 ? 40 : 0)
      const onlyV2 = index === 12 ? 57 : next(14) === 0 ? 6 : 0
      const onlyV3 = next(20) === 0 ? 5 : 0
      return counts({
        same: 520 + next(40),
        equivalent: 800 + next(60) - (index >= 51 ? 620 : 0),
        differs,
        onlyV2,
        onlyV3,
      })
    },
    { askedAgain: 118 },
  )
  const differences: RunDocument['differences'][number][] = [
    { ...shape('RecordedOn', 'value', 'time', 'time:+3600s'), count: 4_407 },
    { ...shape('Comment', 'value', 'length:51-100', 'length:21-50 cut'), count: 96 },
    { ...shape('Comment', 'value', 'length:10-20', 'length:10-20 trimmed'), count: 61 },
    { ...shape('SchoolAttendanceCode', 'value', 'code:present', 'code:absent'), count: 44 },
    { ...shape('MinutesLate', 'null', 'null', 'number:0'), count: 38 },
    { ...shape('AttendanceHistorys', 'missing', 'element', 'missing'), count: 27 },
    { ...shape('ExternalID', 'value', 'guid', 'guid'), count: 12 },
    { ...shape('RecordedBy', 'null', 'guid', 'null'), count: 9 },
    { ...shape('ChangeProcessName', 'value', 'length:10-20', 'length:10-20'), count: 7 },
    { ...shape('Enrolments/EnrolmentStatuses', 'missing', 'element', 'missing'), count: 6 },
    { ...shape('MinutesLate', 'value', 'number:1-5', 'number:6-15'), count: 3 },
    { ...shape('Enrolments/LeavingDate', 'null', 'time', 'null'), count: 2 },
  ]
  return {
    ...document,
    differences,
    equivalences,
    noise: {
      measured: true,
      records: 31,
      differences: [
        { path: 'RecordedOn', kind: 'value', count: 24 },
        { path: 'Comment', kind: 'null', count: 7 },
      ],
    },
    ownRules: [
      {
        name: 'legacy-process-name',
        reason: 'V2 keeps the name of the first register',
        owner: 'Attendance team',
        path: 'ChangeProcessName',
        expires: '2026-12-31',
        expired: false,
        count: 212,
      },
      {
        name: 'late-minutes-rounding',
        reason: 'V2 rounded to five minutes until February',
        owner: 'Attendance team',
        path: 'MinutesLate',
        expires: '2026-02-28',
        expired: true,
        count: 3,
      },
    ],
  }
}

/** V2 against itself: every record is the same. */
export function identicalRun(): RunDocument {
  return runOver(schoolDays(58), () => counts({ same: 1440 }), { partner: null })
}

/** Every record is the same or equivalent. */
export function readyRun(): RunDocument {
  const next = numbersFrom(3)
  return {
    ...runOver(schoolDays(58), () => counts({ same: 400 + next(40), equivalent: 1000 + next(40) }), {
      askedAgain: 41,
    }),
    equivalences,
  }
}

/** Three years of the whole school. */
export function schoolRun(): RunDocument {
  const next = numbersFrom(11)
  return {
    ...runOver(
      schoolDays(570),
      (index) =>
        counts({ same: 1100 + next(50), equivalent: 60, differs: index % 3 === 0 ? 5 + next(9) : 0 }),
      { differences: [{ ...shape('Comment', 'value', 'length:51-100', 'length:50'), count: 2000 }] },
    ),
    equivalences,
  }
}

/** A run that was stopped, of which a part could not be read. */
export function stoppedRun(): RunDocument {
  const document = runOver(schoolDays(9), () => counts({ same: 1200, equivalent: 90, unknown: 8 }), {
    complete: false,
    skipped: 5200,
  })
  return { ...document, equivalences, noise: { measured: false, records: 0, differences: [] } }
}

/** Live comparisons of shadow, with the delay until a mark was visible. */
export function liveRun(): RunDocument {
  const next = numbersFrom(5)
  const document = runOver(
    schoolDays(20),
    () =>
      counts({ same: 160 + next(30), equivalent: 30, differs: 6 + next(9), unknown: next(8) === 0 ? 5 : 0 }),
    { kind: 'live', dropped: 24, skipped: 118 },
  )
  return {
    ...document,
    kinds: split(document.verdicts, [
      ['batch', 0.8],
      ['record', 0.15],
      ['readFilter', 0.05],
    ]),
    differences: [
      { ...shape('reply/layout', 'value', 'layout:nested', 'layout:flat'), count: 88 },
      { ...shape('part/http/Content-Length', 'missing', 'field:set', 'field:none'), count: 64 },
      { ...shape('part/reason', 'value', 'reason:other', 'reason:standard'), count: 31 },
      { ...shape('RecordedOn', 'value', 'time', 'time:+3600s'), count: 12 },
    ],
    equivalences,
    noise: { measured: false, records: 0, differences: [] },
    delays: [
      { upToMs: 250, count: 1204 },
      { upToMs: 500, count: 1711 },
      { upToMs: 1000, count: 806 },
      { upToMs: 2000, count: 214 },
      { upToMs: 5000, count: 61 },
      { upToMs: 10_000, count: 9 },
      { upToMs: 30_000, count: 3 },
      { upToMs: null, count: 0 },
    ],
  }
}

/** A run with a thousand classes of differences. */
export function manyClassesRun(): RunDocument {
  const document = runOver(schoolDays(30), () => counts({ same: 900, differs: 100 }), {})
  return {
    ...document,
    differences: Array.from({ length: 1000 }, (_, index) => ({
      ...shape(`Enrolments/Field${index}`, 'value', 'length:1-9', 'length:10-20'),
      count: 1000 - index,
    })),
  }
}

/** Texts that try to leave their place in a report, or to run there. */
export const hostileTexts = [
  '<script>document.title="injected"</script>',
  '"><img src=x onerror=document.title="injected">',
  "' onmouseover='document.title=1",
  '</style><script>document.title="injected"</script>',
  ']]><injected/>',
  '=HYPERLINK("http://attacker.example")',
  '+1+cmd|calc',
  '-2+3',
  '@SUM(A1)',
  'safe\u202Etxt.exe\u0000\u0007\ud800',
  '${7*7}{{7*7}}',
  '<!--',
  '&lt;script&gt;',
] as const

/** A run whose every text is hostile. */
export function hostileRun(): RunDocument {
  const text = (index: number): string => hostileTexts[index % hostileTexts.length] ?? ''
  const document = runOver(schoolDays(3), () => counts({ same: 100, differs: 40, onlyV2: 8 }), {})
  return {
    ...document,
    run: text(0),
    partner: text(1),
    kinds: document.kinds.map((group, index) => ({ ...group, name: text(index) })),
    codeClasses: document.codeClasses.map((group, index) => ({ ...group, name: text(index + 2) })),
    days: document.days.map((group, index) => ({ ...group, name: text(index + 4) })),
    differences: hostileTexts.map((path, index) => ({
      ...shape(path, 'value', text(index + 1), text(index + 2)),
      count: 30 - index,
    })),
    equivalences: hostileTexts.map((rule, index) => ({ rule, path: text(index + 3), count: 20 })),
    noise: {
      measured: true,
      records: 20,
      differences: hostileTexts.map((path) => ({ path, kind: 'value', count: 9 })),
    },
    ownRules: hostileTexts.map((name, index) => ({
      name,
      reason: text(index + 1),
      owner: text(index + 2),
      path: text(index + 3),
      expires: '2026-01-01',
      expired: index % 2 === 0,
      count: 9,
    })),
  }
}

/** One run of each kind, by name. */
export const samples = {
  empty: emptyRun,
  identical: identicalRun(),
  ready: readyRun(),
  term: termRun(),
  school: schoolRun(),
  stopped: stoppedRun(),
  live: liveRun(),
  manyClasses: manyClassesRun(),
  hostile: hostileRun(),
}
