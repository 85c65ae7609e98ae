import fc from 'fast-check'

import type { Expressions } from './expressions.ts'
import { aliases, filters, formats, option, shapes, some, withAliases } from './options.ts'
import type { RawOption, Reads } from './read.ts'
import type { Samples } from './samples.ts'

type Text = fc.Arbitrary<string>

const mixedCase = (text: string): Text =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant(text) },
    { weight: 1, arbitrary: fc.constantFrom(text.toLowerCase(), text.toUpperCase()) },
  )

const slash = fc.oneof({ weight: 9, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.constant('/') })

const under = (base: Text, resource: Text): Text =>
  fc.tuple(base, resource, slash).map((parts) => parts.join(''))
/** Generates spellings of the path `/V2`, sometimes below a prefix (service-facts 13). */
const rootBelow = (...prefixes: readonly string[]): Text =>
  fc
    .tuple(
      fc.oneof({ weight: 6, arbitrary: fc.constant('') }, fc.constantFrom(...prefixes)),
      fc.constantFrom('/V2', '/V2', '/V2', '/v2', '/%562'),
    )
    .map((parts) => parts.join(''))
const root = rootBelow('/sp-api-write-back-partner-live', '/a/B', '/%C3%A9t%c3%a9')
const attendance = fc
  .tuple(
    fc.oneof({ weight: 4, arbitrary: root }, rootBelow('/AttendanceServiceFarm1/OData')),
    mixedCase('/Attendance'),
  )
  .map((parts) => parts.join(''))
const records = under(
  attendance,
  fc.oneof({ weight: 6, arbitrary: mixedCase('/AttendanceRecords') }, fc.constant('/Attendance%52ecords')),
)

/** Generates headers that affect the reply, such as a page size or a media type. */
export const headers = fc
  .record(
    {
      Prefer: fc.constantFrom('odata.maxpagesize=7', 'maxpagesize=25', 'odata.maxpagesize=3, return=minimal', 'respond-async'),
      Accept: fc.oneof(fc.constantFrom('application/json', '*/*', 'application/json;q=0.9, text/plain'), formats.map((type) => (type.includes('/') ? type : '*/*'))),
      'OData-MaxVersion': fc.constantFrom('4.0', '4.01'),
    },
    { requiredKeys: [] },
  )
  .map((given) => Object.fromEntries(Object.entries(given).filter((_, index) => index < 2))) // prettier-ignore

const paging = fc.constantFrom(4, 7, 10, 30).map((size) => ({ Prefer: `odata.maxpagesize=${size}` }))

/** Generates a key predicate as it appears in a path (OData URL conventions 4.3.1). */
function keys(id: Text): Text {
  const encodedKey = id.map((value) => `%28${value}%29`)
  return fc.oneof(
    { weight: 6, arbitrary: id.map((value) => `(${value})`) },
    { weight: 2, arbitrary: id.map((value) => `(ExternalID=${value})`) },
    { weight: 2, arbitrary: fc.tuple(id, fc.constantFrom("('?')", "(ExternalID='?')", '(%20?%20)', '(ExternalID%20=%20?)', '(%27?%27)', '(externalid=?)', '(Learner=?)', '(ExternalID=?,Learner=?)', '(@key)', '()')).map(([value, form]) => form.replaceAll('?', value)) },
    { weight: 1, arbitrary: encodedKey },
  ) // prettier-ignore
}

/** Generates valid reads, of which most are answered with 200. */
export function createGoodReads(expressions: Expressions, samples: Samples): Reads {
  const read = (path: Text, options: fc.Arbitrary<readonly RawOption[]>): Reads =>
    fc.record({ method: fc.constant('GET'), path, options, headers: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: paging }, headers) }) // prettier-ignore
  const filter = option('filter', filters(expressions, samples))
  const shape = shapes(expressions)
  const query = fc
    .tuple(filter, shape, aliases(expressions), fc.boolean())
    .map(([first, others, values, last]) =>
      withAliases(last ? [...others, first] : [first, ...others], values),
    )
  const { guid } = expressions.literals
  const id = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...samples.marks) }, guid)
  const keyed = fc
    .tuple(
      records.map((path) => path.replace(/\/$/, '')),
      keys(id),
      slash,
    )
    .map((parts) => parts.join(''))
  const single = some(
    [3, option('select', fc.constantFrom('Learner', 'ExternalID,Comment', '*', 'AttendanceHistorys', 'Present, Absent'))],
    [8, option('format', formats)],
    [12, filter],
    [12, option('count', fc.constant('true'))],
    [12, option('expand', fc.constant('AttendanceHistorys'))],
    [12, fc.record({ name: fc.constantFrom('custom', '@key'), value: id })],
  ) // prettier-ignore
  const property = fc.constantFrom(
    '/Comment',
    '/Comment/$value',
    '/Learner',
    '/MinutesLate/$value',
    '/AttendanceHistorys',
    '/$count',
    '/$ref',
    '/Nothing',
  )
  return fc.oneof(
    { weight: 30, arbitrary: read(records, query) },
    { weight: 6, arbitrary: read(keyed, single) },
    { weight: 1, arbitrary: read(fc.tuple(keyed, property).map((parts) => parts.join('')), some([6, option('format', formats)])) },
    { weight: 2, arbitrary: read(under(records.map((path) => path.replace(/\/$/, '')), fc.constantFrom('/$count', '/%24count')), fc.tuple(filter, some([4, option('top', fc.constant('5'))])).map(([one, rest]) => [one, ...rest])) },
    { weight: 2, arbitrary: read(under(attendance, fc.constantFrom('/$metadata', '/%24metadata', '/$METADATA')), some([4, option('format', fc.constantFrom('xml', 'json', 'application/xml', 'application/json'))])) },
    { weight: 2, arbitrary: read(under(attendance, fc.constant('')), some([4, option('format', formats)])) },
    { weight: 6, arbitrary: createRegistrationReads(expressions, samples, read) },
  ) // prettier-ignore
}

/** Generates reads of `LearnerRegistations` (service.md 1.1, with this spelling). */
function createRegistrationReads(
  { literals }: Expressions,
  samples: Samples,
  read: (path: Text, options: fc.Arbitrary<readonly RawOption[]>) => Reads,
): Reads {
  const set = fc.oneof({ weight: 4, arbitrary: mixedCase('/LearnerRegistations') }, fc.constant('/LearnerRegistrations'))
  const path = under(root, set)
  const id = fc.oneof(fc.constantFrom(...samples.learners), literals.guid)
  const keyed = fc.tuple(path.map((text) => text.replace(/\/$/, '')), keys(id)).map((parts) => parts.join(''))
  const link = fc.constantFrom('Enrolments', 'BoarderStatuses', 'PartTimeRecords', 'UPNHistory', 'Enrolments($expand=EnrolmentStatuses)', 'Enrolments($select=DateOfAdmission;$top=1)', 'Enrolments($filter=DateOfAdmission ge 2024-01-01T00:00:00Z;$orderby=DateOfAdmission)', 'UPNHistory($count=true)', '*', 'Nothing', 'Enrolments/$count')
  const expand = fc.tuple(fc.array(link, { minLength: 1, maxLength: 3 }), fc.constantFrom(',', ', ')).map(([links, comma]) => links.join(comma))
  const condition = fc.oneof(
    literals.string.map((text) => `contains(UniquePupilNumber,${text})`),
    fc.constantFrom("startswith(AdmissionNumber,'0010')", 'LocalUPN eq null', 'IsEducatedAtAnotherSiteButNotInASchool', 'Enrolments/any(e:e/DateOfLeaviing eq null)', 'UPNHistory/$count eq 0', "UniquePupilNumber eq 'Z694705081531'", 'Nothing eq 1'),
    id.map((value) => `ExternalID eq ${value}`),
  )
  const shape = some(
    [2, option('expand', expand)],
    [3, option('filter', condition)],
    [4, option('orderby', fc.constantFrom('AdmissionNumber desc', 'UniquePupilNumber', 'ExternalID asc,LocalUPN'))],
    [4, option('top', fc.integer({ min: 0, max: 40 }).map(String))],
    [5, option('skip', fc.integer({ min: 0, max: 40 }).map(String))],
    [4, option('select', fc.constantFrom('AdmissionNumber', 'ExternalID, LocalUPN', '*', 'Enrolments', 'Nothing'))],
    [4, option('count', fc.constantFrom('true', 'false'))],
    [12, option('format', formats)],
  )
  return fc.oneof(
    { weight: 5, arbitrary: read(path, shape) },
    { weight: 2, arbitrary: read(keyed, some([2, option('expand', expand)], [4, option('select', fc.constant('AdmissionNumber'))])) },
    { weight: 1, arbitrary: read(under(path.map((text) => text.replace(/\/$/, '')), fc.constant('/$count')), some([2, option('filter', condition)])) },
    { weight: 1, arbitrary: read(fc.tuple(keyed, fc.constantFrom('/Enrolments', '/UPNHistory', '/Nothing')).map((parts) => parts.join('')), fc.constant([])) },
  )
} // prettier-ignore
