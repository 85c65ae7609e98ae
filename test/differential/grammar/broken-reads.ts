import fc from 'fast-check'

import { encoded } from './encoding.ts'
import type { Expressions } from './expressions.ts'
import { allFields } from './literals.ts'
import { option } from './options.ts'
import type { RawOption, Read, Reads } from './read.ts'
import type { Samples } from './samples.ts'

type Text = fc.Arbitrary<string>

/** Text that an edit inserts: tokens of the grammar, and characters that the grammar does not allow. */
const pieces = fc.constantFrom(
  ...['(', ')', "'", ',', '/', ' ', ' eq ', ' and ', ' not ', 'null', '@x', '$it', '$root', ':', ';', '!', '%', '[', ']'],
  ...['{', '}', '"', '\\', '\u0000', '\u007f', '\n', '\u00a0', '\u2028', '#', '&', '=', '$', '-', '.', '1', 'x', 'é', '🚌', '<', '--'],
  ...['eq', 'Nothing', 'Learner', 'AttendableEventStart', 'any(', 'case(', 'duration', "'P'", 'T', 'Z', '+01:00'],
) // prettier-ignore

/** Generates text with one to three edits: an insertion, a deletion or a duplication. */
const edited = (texts: Text): Text =>
  fc
    .tuple(texts, fc.array(fc.tuple(fc.nat(999), fc.constantFrom('insert', 'remove', 'double'), pieces), { minLength: 1, maxLength: 3 }))
    .map(([text, edits]) =>
      edits.reduce((before, [place, how, piece]) => {
        const at = Math.floor((place / 1000) * (before.length + 1))
        const [head, tail] = [before.slice(0, at), before.slice(at)]
        if (how === 'insert') return head + piece + tail
        return how === 'remove' ? head + tail.slice(1 + (place % 4)) : head + tail.slice(0, 3) + tail
      }, text),
    ) // prettier-ignore

const repeat = (count: number, make: (index: number) => string, comma = ''): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(comma)

/** Generates queries at the limits of length, depth and numbers. */
function huge({ learners, fromMs }: Samples): fc.Arbitrary<RawOption[]> {
  const day = new Date(fromMs).toISOString().replace('.000Z', 'Z')
  const start = `AttendableEventStart eq ${day}`
  const one = learners[0] ?? ''
  const filter = fc.oneof(
    fc.integer({ min: 60, max: 130 }).map((n) => `${'('.repeat(n)}${start}${')'.repeat(n)}`),
    fc.integer({ min: 60, max: 130 }).map((n) => `${start} and ${'not '.repeat(n)}Present`),
    fc
      .integer({ min: 10, max: 130 })
      .map((n) => `${start} and ${'tolower('.repeat(n)}Comment${')'.repeat(n)} eq 'a'`),
    fc.constantFrom(50, 250, 700, 2_000).map((n) => `${start} and Learner in (${repeat(n, () => one, ',')})`),
    fc
      .constantFrom(40, 200, 600)
      .map((n) => `${start} and (${repeat(n, () => `Learner eq ${one}`, ' or ')})`),
    fc.constantFrom(1_000, 20_000, 40_000).map((n) => `${start} and Comment eq '${'x'.repeat(n)}'`),
    fc.constantFrom(127, 128, 129).map((n) => `${start} and ${'x'.repeat(n)} eq 1`),
    fc
      .integer({ min: 90, max: 105 })
      .map((n) => `${start} and MinutesLate ${repeat(n, () => 'add 1', ' ')} gt 3`),
    fc
      .constantFrom('1e400', '-1e400', '99999999999999999999', `1${'0'.repeat(400)}`, '0.'.padEnd(60, '3'))
      .map((n) => `${start} and MinutesLate lt ${n}`),
    fc
      .constantFrom(
        '99999-01-01T00:00:00Z',
        '2026-02-30T00:00:00Z',
        '2026-13-01T00:00:00Z',
        '2026-03-02T24:00:00Z',
        '2026-03-02',
        '2026-03-02T09:00:00',
        '292278995-01-01T00:00:00Z',
        '-9999-01-01T00:00:00Z',
      )
      .map((at) => `AttendableEventStart ge ${at} and Learner eq ${one}`),
  )
  const number = fc.constantFrom(
    '-1',
    '1.5',
    '1e3',
    'x',
    '',
    ' 5 ',
    '0005',
    '2147483648',
    '9007199254740993',
    '99999999999999999999',
    '+5',
    '٣',
    'null',
    "'5'",
  )
  const scope: RawOption = { name: '$filter', value: encodeURIComponent(start) }
  return fc.oneof(
    { weight: 4, arbitrary: option('filter', filter).map((it) => [it]) },
    { weight: 3, arbitrary: fc.tuple(fc.constantFrom('top', 'skip'), number).chain(([name, text]) => option(name, fc.constant(text))).map((it) => [scope, it]) },
    { weight: 1, arbitrary: fc.integer({ min: 90, max: 110 }).map((n) => [{ name: '$filter', value: encodeURIComponent(`${start} and @a0`) }, ...Array.from({ length: n }, (_, index) => ({ name: `@a${index}`, value: `@a${index + 1}` })), { name: `@a${n}`, value: 'Present' }]) },
    { weight: 1, arbitrary: fc.constant<RawOption[]>([{ name: '$filter', value: encodeURIComponent(`${start} and @a`) }, { name: '@a', value: '@b' }, { name: '@b', value: '@a' }]) },
  ) // prettier-ignore
}

/** Generates option lists that a service refuses, or at least may interpret in different ways. */
function oddOptions(expressions: Expressions, filter: fc.Arbitrary<RawOption>): fc.Arbitrary<RawOption[]> {
  const raw = (name: string, value: string | undefined): RawOption => ({ name, value })
  const wrong = fc.constantFrom(
    raw('$search', 'late'), raw('$search', 'a%3Bb'), raw('search', '%22bus%20late%22'), raw('$search', '('), raw('$expand', 'AttendanceHistorys'),
    raw('expand', 'Learner'), raw('$expand', '*'), raw('$expand', 'AttendanceHistorys(%24top=1%3B%24skip=1)'), raw('$compute', 'MinutesLate%20add%201%20as%20m'), raw('$apply', 'aggregate($count%20as%20n)'),
    raw('$index', '3'), raw('$levels', '2'), raw('$deltatoken', 'abc'), raw('$skiptoken', 'abc'), raw('$skiptoken', ''), raw('$skiptoken', '1.2.3'), raw('$skiptoken', '5'), raw('skiptoken', '1.0.0'),
    raw('$schemaversion', '*'), raw('$format', 'xml'), raw('$format', 'atom'), raw('$format', 'application/xml'), raw('$format', 'text/html'), raw('$format', ''), raw('$format', 'application/json;odata.metadata=all'),
    raw('$format', 'application/jsonp'), raw('$count', 'yes'), raw('$count', '1'), raw('$count', ''), raw('$count', 'true%20'), raw('$orderby', ''), raw('$orderby', 'Learner%20up'), raw('$orderby', 'Nothing'), raw('$orderby', 'Learner,'),
    raw('$orderby', 'AttendanceHistorys'), raw('$orderby', 'Learner%20desc%20asc'), raw('$select', ''), raw('$select', 'Nothing'), raw('$select', 'Learner,'), raw('$select', 'learner'), raw('$select', 'Learner/ExternalID'), raw('$select', 'a.b.*'),
    raw('$select', 'AttendanceHistorys($top=1)'), raw('$nothing', '1'), raw('$', '1'), raw('%24%24filter', 'x'), raw('$filter', undefined), raw('$top', undefined), raw('', '1'), raw('', ''), raw('@', '1'), raw('@1', '1'),
    raw('@x', "'"), raw('@x', undefined), raw('$FILTER', 'Present'), raw('filter', 'Present'), raw('%2524filter', 'Present'), raw('$top', '%zz'), raw('x', '%zz'), raw('%zz', '1'), raw('$filter', '%C3%28'), raw('$filter', '%'),
    raw('$filter', '%C0%AF'), raw('$filter', 'Present%00'), raw('$filter', '%EF%BB%BFPresent'), raw('$filter', ''), raw('$filter', '%20'), raw('$top', '1%26$skip=1'), raw('$top', '1;$skip=1'), raw('$filter', 'Comment%20eq%20%27%'), raw('x', '%FF'),
  ) // prettier-ignore
  const ill = option('filter', expressions.illTyped)
  const unknown = option('filter', fc.tuple(fc.constantFrom(...allFields), fc.constantFrom('/Nothing eq 1', 's eq null', '/$count eq 1', '/any()', ' eq Attendee/ExternalID', ' eq Nothing(1)', ' has Edm.Colour\'Red\'', '/Edm.String eq null', ' eq $root/AttendanceRecords', ' eq Self.Function(x=1)')).map((parts) => parts.join(''))) // prettier-ignore
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(filter, wrong, fc.boolean()).map(([one, other, first]) => (first ? [other, one] : [one, other])) },
    { weight: 1, arbitrary: wrong.map((one) => [one]) },
    { weight: 3, arbitrary: ill.map((one) => [one]) },
    { weight: 2, arbitrary: unknown.map((one) => [one]) },
    { weight: 1, arbitrary: fc.tuple(filter, filter).map(([one, other]) => [one, other]) },
  ) // prettier-ignore
}

/** Generates paths that name no resource, and paths that servers interpret in different ways. */
const oddPath = fc.constantFrom(
  ...['/V2/Attendance/AttendanceRecord', '/V2/Attendance/AttendanceRecords/x', '/V2/Attendance/AttendanceRecords()', '/V2/Attendance/AttendanceRecords(', '/V2/Attendance/AttendanceRecords)'],
  ...['/V2/Attendance/AttendanceRecords(x)', '/V2/Attendance/AttendanceRecords(1)(2)', '/V2/Attendance//AttendanceRecords', '/V2/Attendance/./AttendanceRecords', '/V2/Attendance/x/../AttendanceRecords', '/V2/Attendance/AttendanceRecords;x=1'],
  ...['/V2/Attendance/AttendanceRecords%2F', '/V2/Attendance/AttendanceRecords%20', '/V2/Attendance/%E0%A4%A', '/V2/Attendance/AttendanceRecords%00', '/V2/Attendance/$metadata/x', '/V2/Attendance/$entity', '/V2/Attendance/$all'],
  ...['/V2/Attendance/$crossjoin(AttendanceRecords)', '/V2/Attendance/StatutoryAttendanceSessions', '/V2/Attendance/AttendanceRecords/SIMS.Changes(startDate=2026-03-02)', '/V2/Attendance/AttendanceRecords/$value', '/V2/Attendance/AttendanceRecords/$filter(Present)'],
  ...['/V2/AttendanceRecords', '/V2/LearnerRegistation', '/V2/LearnerPersonals', '/V2', '/V2/', '/V4/Attendance/AttendanceRecords', '/V2/LearnerRegistations/x', '/V2/LearnerRegistations()', '/V2/Attendance/LearnerRegistations', '/V2/$metadata', '/V2/Attendance/$batch'],
) // prettier-ignore

/** Generates reads that break one rule: of the grammar, types, encoding, limits, path, method or headers. */
export function createBrokenReads(good: Reads, expressions: Expressions, samples: Samples): Reads {
  const { condition, literals } = expressions
  const path = fc.constantFrom('/V2/Attendance/AttendanceRecords', '/V2/Attendance/AttendanceRecords', '/sp-api-write-back-partner-live/v2/Attendance/AttendanceRecords')
  const scoped = condition.map((text) => `Learner eq ${samples.learners[0] ?? ''} and ${text}`)
  const filter = option('filter', scoped)
  const get = (options: fc.Arbitrary<readonly RawOption[]>): Reads => fc.record({ method: fc.constant('GET'), path, options, headers: fc.constant({}) })
  const change = (make: (read: Read, extra: string) => Read, ...extras: readonly string[]): Reads => fc.tuple(good, fc.constantFrom(...extras)).map(([read, extra]) => make(read, extra))
  const order = option('orderby', edited(fc.constantFrom('Learner desc', 'AttendableEventStart,Learner asc', 'length(Comment) desc')))
  const scope = option('filter', literals.guid.map((id) => `Learner eq ${id}`))
  return fc.oneof(
    { weight: 8, arbitrary: get(option('filter', edited(scoped)).map((one) => [one])) },
    { weight: 2, arbitrary: get(fc.tuple(scope, order).map(([one, other]) => [one, other])) },
    { weight: 1, arbitrary: get(fc.tuple(filter, encoded(edited(condition))).map(([one, value]) => [one, { name: '@bool', value }])) },
    { weight: 10, arbitrary: get(oddOptions(expressions, filter)) },
    { weight: 3, arbitrary: get(huge(samples)) },
    { weight: 3, arbitrary: fc.record({ method: fc.constant('GET'), path: oddPath, options: fc.oneof(fc.constant([]), filter.map((one) => [one])), headers: fc.constant({}) }) },
    { weight: 3, arbitrary: change((read, method) => ({ ...read, method }), 'HEAD', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS') },
    { weight: 1, arbitrary: change((read, value) => ({ ...read, headers: { ...read.headers, Accept: value } }), 'text/html', 'application/xml', 'application/atom+xml', 'application/json;odata.metadata=verbose', 'application/json;q=0') },
    { weight: 1, arbitrary: change((read, value) => ({ ...read, headers: { ...read.headers, Prefer: value } }), 'odata.maxpagesize=0', 'odata.maxpagesize=-1', 'maxpagesize=x', 'odata.maxpagesize=99999999999', 'odata.maxpagesize=2;x=1', 'odata.maxpagesize=4,odata.maxpagesize=6') },
    { weight: 1, arbitrary: change((read, value) => ({ ...read, headers: { ...read.headers, 'OData-MaxVersion': value } }), '3.0', '2.0', 'x') },
    { weight: 1, arbitrary: change((read, value) => ({ ...read, headers: { ...read.headers, Authorization: value } }), '', 'Bearer wrong', 'Basic c2FuZGJveA==', 'sandbox') },
    { weight: 1, arbitrary: change((read, value) => ({ ...read, headers: { ...read.headers, 'Ocp-Apim-Subscription-Key': value } }), '', 'wrong') },
  )
} // prettier-ignore
