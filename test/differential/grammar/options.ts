import fc from 'fast-check'

import { encoded, optionName } from './encoding.ts'
import type { Expressions } from './expressions.ts'
import { allFields, families, formatTime } from './literals.ts'
import type { RawOption } from './read.ts'
import type { Samples } from './samples.ts'

type Text = fc.Arbitrary<string>

/** Generates an option with one spelling of its name and one encoding of its value. */
export const option = (name: string, value: Text): fc.Arbitrary<RawOption> =>
  fc.record({ name: optionName(name), value: encoded(value) })

/** Generates the options of `makers`, each with a probability of 1 in `odds`. */
export const some = (
  ...makers: readonly (readonly [odds: number, maker: fc.Arbitrary<RawOption>])[]
): fc.Arbitrary<RawOption[]> =>
  fc
    .tuple(
      ...makers.map(([odds, maker]) =>
        fc.oneof({ withCrossShrink: true }, { weight: odds - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: maker }),
      ),
    )
    .map((list) => list.filter((item) => item !== undefined)) // prettier-ignore

const HOUR_MS = 3_600_000
const list = (item: Text, maxLength: number): Text =>
  fc
    .tuple(fc.array(item, { minLength: 1, maxLength }), fc.constantFrom(',', ',', ', '))
    .map(([items, comma]) => items.join(comma))

/** Generates conditions that make an attendance read narrow enough for V2: a range of days, or ids (service.md 4 and 8). */
function scopes({ literals }: Expressions, samples: Samples): Text {
  const hours = Math.round((samples.toMs - samples.fromMs) / HOUR_MS)
  const range = fc
    .tuple(
      fc.nat(hours),
      fc.constantFrom(24, 24, 24, 24, 24, 48, 48, 48, 96, 96, 7, 7, 24 * 14, 24 * 90),
      fc.constantFrom('lt', 'le'),
    )
    .map(([begin, length, end]) => {
      const fromMs = samples.fromMs + Math.floor(begin / 12) * 12 * HOUR_MS
      return `AttendableEventStart ge ${formatTime(fromMs)} and AttendableEventStart ${end} ${formatTime(fromMs + length * HOUR_MS)}`
    })
  // Ranges that are too long for a single read of V3. Most begin before the first mark, so that one of the reads can end between two marks.
  const wide = fc
    .tuple(
      fc.integer({ min: -24 * 130, max: 0 }),
      fc.integer({ min: 24 * 91, max: 24 * 400 }),
      fc.constantFrom('lt', 'le'),
    )
    .map(([begin, length, end]) => {
      const fromMs = samples.fromMs + begin * HOUR_MS
      return `AttendableEventStart ge ${formatTime(fromMs)} and AttendableEventStart ${end} ${formatTime(fromMs + length * HOUR_MS)}`
    })
  const learner = fc.constantFrom(...samples.learners).map((id) => `Learner eq ${id}`)
  const ids = fc.array(fc.constantFrom(...samples.learners), { minLength: 1, maxLength: 3 })
  // Adds sessions of other terms, so that the times are spread over the school year.
  const sessions = [...samples.starts, '2025-10-06T08:00:00Z', '2026-01-12T09:00:00Z', '2026-06-08T08:00:00Z']
  const times = fc.array(fc.constantFrom(...sessions), { minLength: 1, maxLength: 3 })
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 4, arbitrary: learner },
    { weight: 6, arbitrary: range },
    { weight: 2, arbitrary: fc.tuple(range, learner).map(([one, other]) => `${one} and ${other}`) },
    { weight: 2, arbitrary: fc.constantFrom(...samples.events).map((id) => `AttendableEvent eq ${id}`) },
    { weight: 1, arbitrary: fc.constantFrom(...samples.marks).map((id) => `ExternalID eq ${id}`) },
    {
      weight: 1,
      arbitrary: fc.tuple(range, ids).map(([one, all]) => `Learner in (${all.join(',')}) and ${one}`),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...samples.starts).map((start) => `AttendableEventStart eq ${start}`),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(times, learner)
        .map(([all, one]) => `AttendableEventStart in (${all.join(',')}) and ${one}`),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(wide, ids).map(([one, all]) => `Learner in (${all.join(',')}) and ${one}`),
    },
    { weight: 1, arbitrary: fc.tuple(wide, learner).map(([one, other]) => `${other} and ${one}`) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(literals.instant, learner)
        .map(([at, one]) => `AttendableEventStart ge ${at} and ${one}`),
    },
  )
}

/** Generates the value of `$filter` for a read of marks. */
export function filters(expressions: Expressions, samples: Samples): Text {
  const scope = scopes(expressions, samples)
  const { condition } = expressions
  const guarded = fc.tuple(scope, condition)
  const either = fc.tuple(guarded, scope, condition)
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 3, arbitrary: scope },
    { weight: 12, arbitrary: guarded.map(([one, other]) => `${one} and (${other})`) },
    { weight: 3, arbitrary: guarded.map(([one, other]) => `(${other}) and ${one}`) },
    {
      weight: 3,
      arbitrary: either.map(
        ([[one, first], other, second]) => `${one} and (${first}) or ${other} and not (${second})`,
      ),
    },
    { weight: 1, arbitrary: guarded.map(([one, other]) => `${one} or (${other})`) },
    { weight: 1, arbitrary: condition },
  )
}

const FLAT = 'AttendanceService.Models.OData.AttendanceRecord'
const field = fc.constantFrom(...allFields)
const selected = fc.oneof(
  { weight: 12, arbitrary: field },
  {
    weight: 1,
    arbitrary: fc.constantFrom('*', 'AttendanceHistorys', `${FLAT}/Learner`, 'AttendanceHistorys/Present'),
  },
)

/** Generates the options of a read of marks other than `$filter`. */
export function shapes({ value }: Expressions): fc.Arbitrary<RawOption[]> {
  const key = fc.oneof({ withCrossShrink: true }, { weight: 3, arbitrary: field }, value)
  const order = fc.tuple(key, fc.constantFrom('', ' asc', ' desc', '  DESC')).map(([one, way]) => one + way)
  return some(
    [3, option('orderby', fc.oneof({ weight: 3, arbitrary: list(order, 3) }, list(order, 2).map((text) => `AttendableEventStart desc,${text}`)))],
    [4, option('top', fc.oneof(fc.integer({ min: 0, max: 60 }), fc.constantFrom(999, 1000, 1001)).map(String))],
    [5, option('skip', fc.oneof(fc.integer({ min: 0, max: 30 }), fc.constantFrom(400, 1000)).map(String))],
    [4, option('select', list(selected, 4))],
    [3, option('count', fc.constantFrom('true', 'true', 'false', 'TRUE'))],
    [20, option('format', formats)],
    [30, fc.record({ name: fc.constantFrom('custom', 'x', 'sap-language'), value: fc.constantFrom('1', 'a%20b', '%23', undefined) })],
  ) // prettier-ignore
}

/** Generates values of `$format`: media types with their levels of annotations (OData JSON format 3.1). */
export const formats = fc.constantFrom(
  ...['json', 'application/json', 'application/json;odata.metadata=minimal', 'JSON'],
  ...['application/json;odata.metadata=none', 'application/json;odata.metadata=full'],
  'application/json;odata.streaming=true;IEEE754Compatible=false',
  'application/json;metadata=full',
)

/** Generates values for the aliases in the options. Some values are missing, which makes the alias null. */
export function aliases({ literals, condition }: Expressions): fc.Arbitrary<RawOption[]> {
  return some(
    ...families.map(
      (family) =>
        [
          2,
          fc.record({
            name: fc.constantFrom(`@${family}`, `%40${family}`),
            value: encoded(family === 'bool' ? fc.oneof(literals.bool, condition) : fc.oneof({ weight: 5, arbitrary: literals[family] }, fc.constant('null'))),
          }),
        ] as const,
    ),
  ) // prettier-ignore
}

/** Omits most values of aliases that no other option uses, since such values would make a failure harder to read. */
export function withAliases(options: readonly RawOption[], values: readonly RawOption[]): RawOption[] {
  const text = options
    .map(({ value }) => decodeURIComponent((value ?? '').replace(/%(?![0-9a-f]{2})/gi, '')))
    .join()
  return [...options, ...values.filter(({ name }) => text.includes(decodeURIComponent(name)))]
}
