import type { CountedGroup, RunDocument } from '../../../src/compare/run-document.ts'
import { addVerdicts } from '../../../src/compare/tally.ts'
import { differenceKinds, type VerdictCounts } from '../../../src/compare/verdict.ts'

export const counts = (given: Partial<VerdictCounts>): VerdictCounts => addVerdicts([given])

export const emptyRun: RunDocument = {
  schema: 1,
  run: 'run-20260327-160000-9f3c',
  kind: 'reads',
  partner: 'acme',
  services: null,
  startedAt: '2026-03-27T16:00:00Z',
  endedAt: '2026-03-27T16:00:02Z',
  from: '2026-01-05',
  to: '2026-03-27',
  complete: true,
  offered: 0,
  compared: 0,
  dropped: 0,
  skipped: 0,
  verdicts: counts({}),
  differences: [],
  equivalences: [],
  noise: { measured: false, records: 0, differences: [] },
  ownRules: [],
  kinds: [],
  codeClasses: [],
  days: [],
  hours: [],
  delays: [],
  askedAgain: 0,
}

/** Returns the school days from 2026-01-05 on. */
function schoolDays(count: number): readonly string[] {
  const days: string[] = []
  for (let time = Date.UTC(2026, 0, 5); days.length < count; time += 86_400_000) {
    const day = new Date(time)
    if (day.getUTCDay() % 6 !== 0) days.push(day.toISOString().slice(0, 10))
  }
  return days
}

/** Divides verdicts into two groups. The first name gets `percent` percent of the verdicts, and the second name gets the rest. */
function split(whole: VerdictCounts, percent: number, names: readonly [string, string]): CountedGroup[] {
  const share = (of: number, part: number): number =>
    part === 0 ? Math.floor((of * percent) / 100) : of - Math.floor((of * percent) / 100)
  return names.map((name, part) => ({
    name,
    verdicts: Object.fromEntries(
      Object.entries(whole).map(([verdict, count]) => [verdict, share(count, part)]),
    ) as VerdictCounts,
  }))
}

/** Creates a run over several days. `dayOf` returns the verdicts of each day. */
function runOver(
  days: readonly string[],
  dayOf: (index: number) => Partial<VerdictCounts>,
  given: Partial<RunDocument> = {},
): RunDocument {
  const groups = days.map((name, index) => ({ name, verdicts: counts(dayOf(index)) }))
  const verdicts = addVerdicts(groups.map((group) => group.verdicts))
  const compared = Object.values(verdicts).reduce((sum, count) => sum + count, 0)
  const { dropped = 0, skipped = 0 } = given
  return {
    ...emptyRun,
    ...{ from: days[0] ?? '', to: days.at(-1) ?? '', endedAt: '2026-03-27T16:04:31Z' },
    ...{ compared, offered: compared + dropped + skipped, verdicts, days: groups },
    kinds: split(verdicts, 97, ['marks', 'registrations']),
    codeClasses: split(verdicts, 90, ['code:present', 'code:absent']),
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

/** Parses one class of differences per line: path, kind, V2's and V3's value class (with `_` for a space), count. */
const classes = (...lines: readonly string[]): RunDocument['differences'] =>
  lines.map((line) => {
    const [path = '', kind, v2Class = '', v3Class = '', count] = line.replaceAll('_', '\t').split(' ')
    const own = { path, v2Class, v3Class: v3Class.replace('\t', ' '), count: Number(count) }
    return { ...own, kind: differenceKinds.find((one) => one === kind) ?? 'value' }
  })

/** Returns a run over a school term with typical first differences: summer time, cut comments, a swapped code, missing rows. */
export function termRun(): RunDocument {
  const rule = { owner: 'Attendance team', path: 'MinutesLate', expires: '2026-12-31' }
  return runOver(
    schoolDays(58),
    (index) => ({
      ...{ same: 540, equivalent: index >= 51 ? 180 : 820, differs: index >= 51 ? 640 : 7 },
      ...(index === 12 && { onlyV2: 57 }),
      ...(index % 20 === 4 && { onlyV3: 5 }),
    }),
    {
      askedAgain: 118,
      services: { v2: 'https://v2.school.example/', v3: 'https://v3.school.example/' },
      differences: classes(
        'RecordedOn value time time:+3600s 4407',
        'Comment value length:51-100 length:21-50_cut 96',
        'Comment value length:10-20 length:10-20_trimmed 61',
        'SchoolAttendanceCode value code:present code:absent 44',
        'MinutesLate null null number:0 38',
        'AttendanceHistorys missing element missing 27',
        'ExternalID value guid guid 12',
        'RecordedBy null guid null 9',
        'ChangeProcessName value length:10-20 length:10-20 7',
        'Enrolments/EnrolmentStatuses missing element missing 6',
        'MinutesLate value number:1-5 number:6-15 3',
        'Enrolments/LeavingDate null time null 2',
      ),
      equivalences,
      noise: {
        ...{ measured: true, records: 31 },
        differences: [{ path: 'RecordedOn', kind: 'value', count: 24 }],
      },
      ownRules: [
        { ...rule, name: 'process-name', reason: 'V2 keeps the first name', expired: false, count: 212 },
        { ...rule, name: 'late', reason: 'V2 rounded', expires: '2026-02-28', expired: true, count: 3 },
      ],
    },
  )
}

export const readyRun = (): RunDocument =>
  runOver(schoolDays(58), () => ({ same: 420, equivalent: 1020 }), { askedAgain: 41, equivalences })

export const schoolRun = (): RunDocument =>
  runOver(schoolDays(570), (index) => ({ same: 1120, differs: index % 3 === 0 ? 8 : 0 }), {
    ...{ partner: null, differences: classes('Comment value length:51-100 length:50 2000') },
  })

/** Returns a run that was stopped before its end. */
export const stoppedRun = (): RunDocument =>
  runOver(schoolDays(9), () => ({ same: 1200, equivalent: 90, unknown: 8 }), {
    ...{ complete: false, skipped: 5200, equivalences, noise: emptyRun.noise },
  })

/** Returns a live run at `shadow`, with the delays until marks were visible. */
export function liveRun(): RunDocument {
  const document = runOver(
    schoolDays(20),
    (index) => ({
      same: 170,
      equivalent: 30,
      differs: index === 8 ? 21 : 9,
      ...(index === 3 && { unknown: 15 }),
    }),
    {
      ...{ kind: 'live', dropped: 24, skipped: 118, startedAt: '2026-01-05T08:12:00Z' },
      hours: [
        { name: '08', verdicts: counts({ same: 2200, equivalent: 400, differs: 160 }) },
        { name: '13', verdicts: counts({ same: 1200, equivalent: 200, differs: 30, unknown: 15 }) },
      ],
    },
  )
  const delays = [1204, 1711, 806, 214, 61, 9, 3, 0]
  const bounds = [250, 500, 1000, 2000, 5000, 10_000, 30_000, null]
  return {
    ...document,
    kinds: split(document.verdicts, 80, ['batch/reply', 'readFilter/answers']),
    differences: classes(
      'reply/layout value layout:nested layout:flat 88',
      'part/http/Content-Length missing field:set field:none 64',
      'part/reason value reason:other reason:standard 31',
      'RecordedOn value time time:+3600s 12',
    ),
    equivalences,
    noise: emptyRun.noise,
    delays: bounds.map((upToMs, at) => ({ upToMs, count: delays[at] ?? 0 })),
  }
}

export const manyClassesRun = (): RunDocument =>
  runOver(schoolDays(30), () => ({ same: 900, differs: 100 }), {
    differences: classes(
      ...Array.from(
        { length: 1000 },
        (_, at) => `Enrolments/F${at} value length:1-9 length:10-20 ${1000 - at}`,
      ),
    ),
  })

/** Texts that could break the syntax of a report, or run as code in a report. */
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

export function hostileRun(): RunDocument {
  const text = (index: number): string => hostileTexts[index % hostileTexts.length] ?? ''
  const document = runOver(schoolDays(3), () => ({ same: 100, differs: 40, onlyV2: 8 }))
  return {
    ...document,
    run: text(0),
    partner: text(1),
    kinds: document.kinds.map((group, index) => ({ ...group, name: text(index) })),
    codeClasses: document.codeClasses.map((group, index) => ({ ...group, name: text(index + 2) })),
    days: document.days.map((group, index) => ({ ...group, name: text(index + 4) })),
    differences: hostileTexts.map((path, index) => ({
      ...{ path, kind: 'value', v2Class: text(index + 1), v3Class: text(index + 2), count: 30 - index },
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

export const samples = {
  empty: emptyRun,
  ready: readyRun(),
  term: termRun(),
  school: schoolRun(),
  stopped: stoppedRun(),
  live: liveRun(),
  manyClasses: manyClassesRun(),
  hostile: hostileRun(),
}
