import type { Comparison, DifferenceKind, FieldDifference } from '../../../src/compare/verdict.ts'
import type { DrawnKind, ListedDifference } from './differ-faces.ts'

/** The value of a field on each side, or `undefined` if the side omits the member. */
interface Sides {
  readonly v2: unknown
  readonly v3: unknown
}

type Classes = readonly [v2: string, v3: string]

const differs = (differences: readonly FieldDifference[]): Comparison => ({
  verdict: differences.length === 0 ? 'same' : 'differs',
  differences,
  equivalences: [],
})

const equivalent = (rule: string, paths: readonly string[]): Comparison => ({
  verdict: paths.length === 0 ? 'same' : 'equivalent',
  differences: [],
  equivalences: paths.map((path) => ({ rule, path })),
})

const nothing = equivalent('', [])
const sided = (verdict: 'onlyV2' | 'onlyV3'): Comparison => ({ ...nothing, verdict })

type Expect = (truth: ListedDifference) => Comparison

/** Returns the values of a field by side. */
function sidesOf({ face, fields }: ListedDifference, path: string): Sides | undefined {
  const field = fields.find((one) => one.path === path)
  if (field === undefined) return undefined
  return face === 'V2' ? { v2: field.shown, v3: field.stored } : { v2: field.stored, v3: field.shown }
}

const field =
  (path: string, classes: (sides: Sides, truth: ListedDifference) => Classes): Expect =>
  (truth) => {
    const sides = sidesOf(truth, path)
    if (sides === undefined) return nothing
    const [v2Class, v3Class] = classes(sides, truth)
    return differs([{ path, kind: kindOf(sides), v2Class, v3Class }])
  }

function kindOf({ v2, v3 }: Sides): DifferenceKind {
  if (v2 === null || v3 === null) return 'null'
  return typeof v2 === typeof v3 ? 'value' : 'type'
}

const rule =
  (name: string, paths: readonly string[]): Expect =>
  (truth) => equivalent(name, paths.filter((path) => sidesOf(truth, path) !== undefined)) // prettier-ignore

const byFace =
  (v2: Expect, v3: Expect): Expect =>
  (truth) =>
    (truth.face === 'V2' ? v2 : v3)(truth)

/**
 * The findings that a comparison must report for each kind of difference. The list follows docs/comparison.md and shares no code with
 * src/compare. If one interface lacks a record, the record must count as a record of the other side only.
 */
export const expectations: Readonly<Record<DrawnKind, Expect>> = {
  recordedOn: field('RecordedOn', shiftClasses),
  start: field('AttendableEventStart', shiftClasses),
  commentCut: field('Comment', byFaceText('longer', 'cut')),
  commentTrimmed: field('Comment', byFaceText('trimmed', 'trimmed')),
  commentOther: field('Comment', plainClasses),
  code: field('SchoolAttendanceCode', codeClasses),
  present: field('Present', codeClasses),
  absent: field('Absent', codeClasses),
  minutesNull: field('MinutesLate', plainClasses),
  minutesZero: field('MinutesLate', plainClasses),
  // If V3 shows minutes as text, the adapter shows null to the V2 client, because it does not read text as a number.
  minutesText: byFace(field('MinutesLate', plainClasses), (truth) => {
    const fields = truth.fields.map((one) => ({ ...one, shown: null }))
    return field('MinutesLate', plainClasses)({ ...truth, fields })
  }),
  process: field('ChangeProcessName', plainClasses),
  recordedBy: field('RecordedBy', () => ['guid', 'guid']),
  id: field('ExternalID', () => ['guid', 'guid']),
  guidCase: rule('guid-case', [
    'ExternalID',
    'RecordedBy',
    'Learner',
    'AttendableEvent',
    'SchoolAttendanceCode',
  ]),
  timeOffset: rule('instant-form', ['RecordedOn', 'AttendableEventStart']),
  timeFraction: rule('instant-form', ['RecordedOn', 'AttendableEventStart']),
  // The adapter writes every member of a record, even if it is null.
  nullMissing: byFace(rule('missing-null', ['ChangeProcessName', 'MinutesLate', 'Comment']), () => nothing),
  missing: byFace(() => sided('onlyV3'), () => sided('onlyV2')), // prettier-ignore
  doubled: byFace(() => differs([count(2, 1)]), () => differs([count(1, 2)])), // prettier-ignore
  order: () => equivalent('order-unasked', ['(row)']),
  // The adapter omits histories unless `reads.histories` is set.
  history: byFace(() => equivalent('history-left-out', ['AttendanceHistorys']), () => nothing), // prettier-ignore
}

const count = (v2: number, v3: number): FieldDifference => ({
  path: '(row)',
  kind: 'count',
  v2Class: `count:${v2}`,
  v3Class: `count:${v3}`,
})

function shiftClasses({ v2, v3 }: Sides): Classes {
  const seconds = (Date.parse(String(v3)) - Date.parse(String(v2))) / 1_000
  return ['time', `time:${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}s`]
}

/** Classifies the code by the booleans of the record, so that the class does not reveal the code. */
function codeClasses(_sides: Sides, { kind, mark, face }: ListedDifference): Classes {
  const { Present: present, Absent: absent } = mark
  const named = (isPresent: unknown, isAbsent: unknown): string =>
    `code:${isPresent === true ? (isAbsent === true ? 'both' : 'present') : isAbsent === true ? 'absent' : 'neither'}`
  const stored = named(present, absent)
  const shown = named(kind === 'present' ? !present : present, kind === 'absent' ? !absent : absent)
  return face === 'V2' ? [shown, stored] : [stored, shown]
}

function plainClasses({ v2, v3 }: Sides): Classes {
  return [classOf(v2), classOf(v3)]
}

function byFaceText(onV2: string, onV3: string): (sides: Sides, truth: ListedDifference) => Classes {
  return (sides, { face }) => {
    const [v2, v3] = plainClasses(sides)
    return [v2, `${v3} ${face === 'V2' ? onV2 : onV3}`]
  }
}

function classOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'number') return `number:${named(value, [0, 5, 15, 30, 60, 1_000])}`
  const text = typeof value === 'string' ? value : ''
  return `length:${named(text.length, [0, 9, 20, 50, 100, 255, 1_000])}`
}

function named(size: number, uppers: readonly number[]): string {
  const at = uppers.findIndex((upper) => size <= upper)
  const from = (uppers[(at < 0 ? uppers.length : at) - 1] ?? -1) + 1
  const upper = uppers[at]
  if (upper === undefined) return `${from}+`
  return from === upper ? String(from) : `${from}-${upper}`
}
