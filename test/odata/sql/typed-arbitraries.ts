import fc, { type Arbitrary } from 'fast-check'

/** A row of `Sample.Thing` in its JSON form. */
export type Thing = Readonly<Record<string, unknown>>

const guids = ['00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-00000000000b'] as const
const texts = ['', 'a', 'ab', 'B', ' b ', 'É', 'b𝔸z', '\ue000', "O'Neil"] as const
const instants = ['2024-03-31T00:59:59.999Z', '2024-02-29T23:00:00Z', '1969-12-31T23:59:59.500Z'] as const
const days = ['2024-02-29', '1969-12-31'] as const
const times = ['00:00:00', '13:30:01.5'] as const
const durations = ['PT1H', '-PT30M', 'P1DT0.25S'] as const

const maybe = <T>(value: Arbitrary<T>): Arbitrary<T | null> => fc.option(value, { nil: null, freq: 3 })

const smallNumber = fc.integer({ min: -3, max: 5 })
const smallDecimal = fc.integer({ min: -12, max: 12 }).map((quarters) => quarters / 4)

export const thing: Arbitrary<Thing> = fc.record({
  ID: fc.constantFrom(...guids),
  Code: fc.constantFrom(...texts),
  Name: maybe(fc.constantFrom(...texts)),
  Size: maybe(smallNumber),
  Weight: maybe(smallDecimal),
  Open: maybe(fc.boolean()),
  Kind: maybe(fc.constantFrom('Plain', 'Fancy')),
  Marks: maybe(fc.constantFrom('Red', 'Red,Blue')),
  Created: maybe(fc.constantFrom(...instants)),
  Day: maybe(fc.constantFrom(...days)),
  At: maybe(fc.constantFrom(...times)),
  Lasts: maybe(fc.constantFrom(...durations)),
  Owner: maybe(fc.record({ ExternalID: maybe(fc.constantFrom(...guids).map((guid) => guid.toUpperCase())) })),
  Tags: fc.array(fc.constantFrom(...texts), { maxLength: 2 }),
  Parts: fc.array(fc.record({ Price: maybe(smallNumber) }), { maxLength: 2 }),
})

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

type Typed = Record<'condition' | 'number' | 'text' | 'instant' | 'date' | 'duration', string>

const comparison = fc.constantFrom('eq', 'ne', 'gt', 'ge', 'lt', 'le')
const equality = fc.constantFrom('eq', 'ne')

const infix = (
  left: Arbitrary<string>,
  operator: Arbitrary<string>,
  right: Arbitrary<string>,
): Arbitrary<string> =>
  fc.tuple(left, operator, right).map(([first, name, second]) => `(${first} ${name} ${second})`)

const call = (names: readonly string[], ...values: readonly Arbitrary<string>[]): Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(...names), fc.tuple(...values))
    .map(([name, given]) => `${name}(${given.join(',')})`)

/** Texts of well-typed expressions over `Sample.Thing`; each is a tree of a few levels. */
const { condition, number, text } = fc.letrec<Typed>((tie) => ({
  number: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(
      fc.constantFrom('Size', 'Weight', 'null'),
      smallNumber.map(String),
      smallDecimal.map((n) => n.toFixed(2)),
    ),
    infix(tie('number'), fc.constantFrom('add', 'sub', 'mul'), tie('number')),
    // A zero divisor is refused as a literal and null as a value.
    infix(
      tie('number'),
      fc.constantFrom('div', 'divby', 'mod'),
      fc.constantFrom('Size', 'Weight', '2', '-1.5'),
    ),
    tie('number').map((operand) => `-(${operand})`),
    call(['round', 'floor', 'ceiling'], tie('number')),
    call(['length'], tie('text')),
    call(['indexof'], tie('text'), tie('text')),
    call(['year', 'month', 'day', 'hour', 'minute', 'second', 'totaloffsetminutes'], tie('instant')),
    call(['totalseconds'], tie('duration')),
    fc.tuple(tie('condition'), tie('number')).map(([when, then]) => `case(${when}:${then},true:1)`),
    fc.constantFrom('Tags/$count', 'Parts/$count($filter=Price gt 1)'),
  ),
  text: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(fc.constantFrom('Name', 'Code', 'null'), fc.constantFrom(...texts).map(quote)),
    call(['concat'], tie('text'), tie('text')),
    call(['tolower', 'toupper', 'trim'], tie('text')),
    call(['substring'], tie('text'), fc.constantFrom('0', '1', '3', '-1')),
    call(['substring'], tie('text'), fc.constantFrom('0', '1', '3'), fc.constantFrom('0', '2')),
    call(['cast'], tie('number'), fc.constant('Edm.String')),
  ),
  instant: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('Created', 'null', ...instants, '2024-02-29T23:30:00+01:30'),
    infix(tie('instant'), fc.constantFrom('add', 'sub'), tie('duration')),
  ),
  date: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('Day', ...days),
    call(['date'], tie('instant')),
    infix(tie('date'), fc.constantFrom('add', 'sub'), tie('duration')),
  ),
  duration: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('Lasts', "duration'PT1H'", "duration'-P1D'"),
    infix(tie('instant'), fc.constant('sub'), tie('instant')),
    infix(tie('date'), fc.constant('sub'), tie('date')),
    infix(tie('duration'), fc.constantFrom('mul', 'div'), fc.constantFrom('2', '-1')),
  ),
  condition: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      'Open',
      'true',
      'false',
      '(Open eq null)',
      '(Owner eq null)',
      '(Owner/ExternalID ne null)',
    ),
    infix(tie('number'), comparison, tie('number')),
    infix(tie('text'), comparison, tie('text')),
    infix(tie('instant'), comparison, tie('instant')),
    infix(tie('date'), comparison, tie('date')),
    infix(tie('duration'), comparison, tie('duration')),
    infix(fc.constantFrom('At', ...times), comparison, fc.constantFrom('At', 'null', ...times)),
    infix(fc.constantFrom('ID', 'Owner/ExternalID'), comparison, fc.constantFrom(...guids, 'ID', 'null')),
    infix(fc.constant('Kind'), equality, fc.constantFrom("S.Kind'Fancy'", "'Plain'", 'null', 'Kind')),
    infix(fc.constant('Kind'), comparison, fc.constantFrom("S.Kind'Fancy'", 'Kind')),
    fc.constantFrom("(Marks has S.Marks'Blue')", "(Marks eq 'Red')"),
    infix(tie('condition'), equality, tie('condition')),
    call(['contains', 'startswith', 'endswith'], tie('text'), tie('text')),
    fc
      .tuple(tie('number'), fc.constantFrom('(1,2.5)', '()', '(null,1)'))
      .map(([x, list]) => `((${x}) in ${list})`),
    fc.constantFrom(
      "Name in ('a','É')",
      'ID in (00000000-0000-0000-0000-00000000000A)',
      "matchesPattern(Code,'^a?b')",
    ),
    fc.constantFrom("Tags/any(t:t eq 'a')", 'Parts/all(p:p/Price gt 0)', 'Tags/any()', "('ab' in Tags)"),
    tie('condition').map((operand) => `not (${operand})`),
    infix(tie('condition'), fc.constantFrom('and', 'or'), tie('condition')),
  ),
}))

export { condition, number, text }
