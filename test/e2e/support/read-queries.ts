/** Ids of a sandbox that queries are made of. */
export interface ReadSamples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string; readonly code: string }[]
}

/** A repeatable source of choices (a linear congruential generator). */
function createChooser(seed: number): {
  readonly number: (below: number) => number
  readonly one: <Item>(items: readonly Item[]) => Item
} {
  let state = seed
  const number = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  return {
    number,
    one: (items) => {
      const item = items[number(items.length)]
      if (item === undefined) throw new RangeError('nothing to choose from')
      return item
    },
  }
}

const fields = [
  'ExternalID', 'Present', 'Absent', 'RecordedOn', 'ChangeProcessName', 'AttendableEventStart', 'RecordedBy',
  'Learner', 'AttendableEvent', 'SchoolAttendanceCode', 'MinutesLate', 'Comment',
] as const // prettier-ignore
const comparisons = ['eq', 'ne', 'gt', 'ge', 'lt', 'le'] as const

/** Choices that queries are made of, the same ones for a seed. */
export interface QueryChoices {
  /** A whole number from 0. */
  readonly number: (below: number) => number
  readonly one: <Item>(items: readonly Item[]) => Item
  /** A condition on any field: comparisons, null, lists, functions, logic so deep. */
  readonly condition: (depth: number) => string
  readonly field: () => string
  /** A query option with `$`, without, or with its encoding. */
  readonly option: (name: string, value: string) => string
}

/** A time as a literal of a filter. */
export const toLiteral = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')
export const DAY_MS = 86_400_000
/** The first of the days that times in conditions fall on. */
const FIRST_DAY = Date.UTC(2026, 1, 23)

/** Creates the choices: every field comes with every comparison it has, in turns. */
export function createQueryChoices(samples: ReadSamples, seed: number): QueryChoices {
  const { number, one } = createChooser(seed)
  const time = (): string => toLiteral(FIRST_DAY + number(24) * DAY_MS + one([9, 13]) * 3_600_000)
  const code = (): string => one(samples.codes).id
  const literals: Record<(typeof fields)[number], () => string> = {
    ExternalID: () => one(samples.events),
    Present: () => one(['true', 'false', 'null']),
    Absent: () => one(['true', 'false', 'null']),
    RecordedOn: time,
    ChangeProcessName: () => one(["'x'", "'Register'", 'null', "''"]),
    AttendableEventStart: time,
    RecordedBy: () => one([one(samples.learners), 'null', 'null']),
    Learner: () => one(samples.learners),
    AttendableEvent: () => one(samples.events),
    SchoolAttendanceCode: code,
    MinutesLate: () => one(['null', '0', '5', '10', '-1']),
    Comment: () => one(['null', "'late'", "'Bus was late'"]),
  }
  const functions = [
    () => "contains(Comment,'a')",
    () => "startswith(ChangeProcessName,'R')",
    () => 'length(Comment) gt 3',
    () => "tolower(Comment) eq 'late'",
    () => `hour(AttendableEventStart) lt ${one([9, 12, 13])}`,
    () => `day(RecordedOn) eq ${1 + number(28)}`,
    () => 'MinutesLate add 5 gt 10',
    () => `Learner in (${one(samples.learners)},${one(samples.learners)})`,
    () => `SchoolAttendanceCode in (${code()},${code()},${code()})`,
    () => '$it/MinutesLate ne null',
  ]
  let turn = 0
  const condition = (depth: number): string => {
    if (depth > 0 && number(3) === 0) {
      const inner = `(${condition(depth - 1)} ${one(['and', 'or'])} ${condition(depth - 1)})`
      return number(4) === 0 ? `not ${inner}` : inner
    }
    if (number(4) === 0) return one(functions)()
    const field = fields[turn % fields.length] ?? 'Learner'
    const ordered = !['ExternalID', 'Present', 'Absent', 'RecordedBy', 'Learner', 'AttendableEvent', 'SchoolAttendanceCode'].includes(field) // prettier-ignore
    const operators = ordered ? comparisons : comparisons.slice(0, 2)
    const operator = operators[Math.floor(turn / fields.length) % operators.length] ?? 'eq'
    turn += 1
    const literal = literals[field]()
    return number(6) === 0 && operator === 'eq' ? `${literal} eq ${field}` : `${field} ${operator} ${literal}`
  }
  return {
    number,
    one,
    condition,
    field: () => one(fields),
    option: (name, value) => `${one(['$', '$', '', '%24'])}${name}=${encodeURIComponent(value)}`,
  }
}

/**
 * Makes V2 queries, the same ones for a seed: conditions, orders, `$top`, `$skip`, `$select` and `$count`, over 1 to 4 days of
 * the spring term.
 */
export function makeReadQueries(count: number, samples: ReadSamples, seed: number): string[] {
  const { number, one, condition, field, option } = createQueryChoices(samples, seed)
  const scope = (): string => {
    const fromMs = FIRST_DAY + number(20) * DAY_MS
    const days = one([1, 1, 1, 2, 4])
    const range = `AttendableEventStart ge ${toLiteral(fromMs)} and AttendableEventStart lt ${toLiteral(fromMs + days * DAY_MS)}`
    const learner = `Learner eq ${one(samples.learners)}`
    return one([range, `${range} and ${learner}`, learner, `AttendableEvent eq ${one(samples.events)}`])
  }
  const maybe = (chance: number, make: () => string): string[] => (number(chance) === 0 ? [make()] : [])
  const order = (): string => `${field()}${one([' asc', ' desc', ''])}`
  return Array.from({ length: count }, (_, index) => {
    const own = number(3) === 0 ? '' : ` and ${condition(2)}`
    return [
      option('filter', `${scope()}${own}`),
      ...maybe(3, () => option('orderby', number(2) === 0 ? order() : `${field()} desc,Learner,${order()}`)),
      ...maybe(3, () => option('top', String(one([0, 1, 7, 50, 999, 1000, 1001, 1500])))),
      ...maybe(4, () => option('skip', String(one([0, 1, 5, 100, 1000])))),
      ...maybe(3, () => option('select', [field(), field(), one([field(), 'AttendanceHistorys'])].join(','))),
      ...maybe(3, () => option('count', one(['true', 'true', 'false']))),
      ...(index % 50 === 0 ? ['custom=1'] : []),
    ].join('&')
  })
}
