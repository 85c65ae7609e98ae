import { guid } from '../../support/batch-request.ts'
import { credentials, type NamedRequest, times } from './hostile-request.ts'
import type { OutsideRequest } from './outside-world.ts'

const MIB = 1_048_576
const SET = '/V2/Attendance/AttendanceRecords'
const WEEK = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart le 2026-03-06T23:00:00Z'

const get = (path: string, headers: Record<string, string> = {}): OutsideRequest => ({
  method: 'GET',
  path: path.replaceAll(' ', '%20'),
  headers: { ...credentials, ...headers },
  body: undefined,
})
const read = (query: string): readonly OutsideRequest[] => [get(`${SET}?${query}`)]
const filtered = (filter: string): readonly OutsideRequest[] => read(`$filter=${WEEK} and ${filter}`)
const page = (text: string): Uint8Array => Buffer.from(text)

const row = (n: number): object => ({
  ExternalID: guid(n),
  Present: true,
  Absent: false,
  RecordedOn: '2026-03-02T09:01:00Z',
  ChangeProcessName: 'Register',
  AttendableEventStart: '2026-03-02T09:00:00Z',
  RecordedBy: { ExternalID: guid(3) },
  Attendee: { Type: 'SIMS.Learner', ExternalID: guid(n) },
  Event: { Type: 'SIMS.Session', ExternalID: guid(9) },
  AttendanceCode: { Type: 'SIMS.Code', ExternalID: guid(8) },
  Qualifier: { MinutesLate: null, Comment: null },
})
const collection = (count: number, make: (n: number) => string): Uint8Array =>
  page(`{"value":[${times(count, make).join()}]}`)

const pages: readonly [name: string, status: number, make: () => Uint8Array, drips?: boolean][] = [
  ['1,000 marks', 200, () => collection(1_000, (n) => JSON.stringify(row(n)))],
  ['5,000 marks', 200, () => collection(5_000, (n) => JSON.stringify(row(n)))],
  ['1.3 M empty rows', 502, () => collection(1_300_000, () => '{}')],
  ['nested brackets', 502, () => page(`{"value":[${'['.repeat(2 * MIB - 9)}${']'.repeat(2 * MIB - 9)}]}`)],
  ['380,000 members of one row', 502, () => page(`{"value":[{${times(380_000, (n) => `"${n.toString(36)}":1`).join()}}]}`)],
  ['380,000 members beside the rows', 502, () => page(`{"value":[],${times(380_000, (n) => `"${n.toString(36)}":1`).join()}}`)],
  ['rows with distinct names', 502, () => collection(20_000, (n) => `{${times(6, (k) => `"${(n * 6 + k).toString(36)}":1`).join()}}`)],
  ['a mark with a comment of 4 MiB', 200, () => collection(1, (n) => JSON.stringify({ ...row(n), Qualifier: { Comment: '\\'.repeat(2 * MIB - 1_000) } }))],
  ['4 MiB of spaces', 200, () => page(`{"value":[${' '.repeat(4 * MIB - 20)}]}`)],
  ['31 MiB of spaces', 502, () => page(' '.repeat(31 * MIB))],
  ['50,000 chunks of a byte', 200, () => page(`{"value":[]${' '.repeat(50_000)}}`), true],
] // prettier-ignore

const jwt = (claims: object): string =>
  `bearer ${[{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.x`

/** Requests with a head of the maximum size (128 KiB). */
const heads: readonly [name: string, status: number, make: () => readonly OutsideRequest[]][] = [
  ['a filter of 5,000 brackets', 400, () => filtered(`${'('.repeat(5_000)}Present eq true${')'.repeat(5_000)}`)],
  ['a filter of 60,000 brackets', 400, () => filtered(`${'('.repeat(60_000)}Present eq true`)],
  ['a filter of 4,000 alternatives', 400, () => filtered(`(${times(4_000, () => 'Present eq true').join(' or ')})`)],
  ['a filter of 400 alternatives', 200, () => filtered(`(${times(400, () => 'Present eq true').join(' or ')})`)],
  ['a filter with 10,000 times not', 400, () => filtered(`${'not '.repeat(10_000)}Present`)],
  ['a filter with 60,000 quotes', 400, () => filtered(`Comment eq '${"''".repeat(30_000)}'`)],
  ['a list of 2,500 guids', 400, () => filtered(`Learner in (${times(2_500, guid).join()})`)],
  ['a list of 300 guids', 200, () => filtered(`(${times(150, (n) => `Learner eq ${guid(n)}`).join(' or ')})`)],
  ['a range of 3,000 years', 400, () => read('$filter=AttendableEventStart ge 0001-01-01T00:00:00Z and AttendableEventStart le 3000-01-01T00:00:00Z')],
  ['20,000 query options', 200, () => read(`$filter=${WEEK}&${times(20_000, (n) => `o${n}`).join('&')}`)],
  ['5,000 times $filter', 400, () => read(times(5_000, () => '$filter=Present').join('&'))],
  ['aliases that each refer to the next', 400, () => read(`$filter=${WEEK} and @a0&${times(4_000, (n) => `@a${n}=@a${n + 1}`).join('&')}`)],
  ['aliases that each double the expression', 400, () => read(`$filter=${WEEK} and @a0&${times(60, (n) => `@a${n}=@a${n + 1} or @a${n + 1}`).join('&')}&@a60=true`)],
  ['$select of 12,000 members', 400, () => read(`$filter=${WEEK}&$select=${times(12_000, () => 'Comment').join()}`)],
  ['$orderby of 12,000 members', 400, () => read(`$filter=${WEEK}&$orderby=${times(12_000, () => 'Comment').join()}`)],
  ['$expand of 4,000 levels', 400, () => read(`$filter=${WEEK}&$expand=${'a($expand='.repeat(4_000)}b${')'.repeat(4_000)}`)],
  ['$expand of registrations, nested', 400, () => [get(`/V2/LearnerRegistations?expand=${'a($expand='.repeat(4_000)}b${')'.repeat(4_000)}`)]],
  ['$expand of 10,000 registrations', 200, () => [get(`/V2/LearnerRegistations?expand=${times(10_000, () => 'a').join()}`)]],
  ['a key of 100,000 characters', 400, () => [get(`${SET}(${'a'.repeat(100_000)})`)]],
  ['a next link that is forged', 400, () => read(`$skiptoken=${'a'.repeat(100_000)}`)],
  ['a path with many layers of percent encoding', 400, () => [get(`/V3/${'%2525252525'.repeat(9_000)}`)]],
  ['a path of 30,000 segments', 400, () => [get(`/V9/${'a/'.repeat(30_000)}`)]],
  ['a path of 30,000 dot segments', 400, () => [get(`/V3/${'../'.repeat(30_000)}`)]],
  ['an opaque token of 100,000 characters', 200, () => [get(`${SET}?$filter=${WEEK}`, { Authorization: `bearer ${'x'.repeat(100_000)}` })]],
  ['a JWT of 4,000 claims', 200, () => [get(`${SET}?$filter=${WEEK}`, { Authorization: jwt(Object.fromEntries(times(4_000, (n) => [`c${n}`, n]))) })]],
  ['a JWT with an issuer of 9,000 names', 200, () => [get(`${SET}?$filter=${WEEK}`, { Authorization: jwt({ iss: times(9_000, String) }) })]],
  ['a JWT of nested brackets', 200, () => [get(`${SET}?$filter=${WEEK}`, { Authorization: `bearer a.${Buffer.from('['.repeat(45_000)).toString('base64url')}.x` })]],
  ['1,900 headers', 431, () => [get(`${SET}?$filter=${WEEK}`, Object.fromEntries(times(1_900, (n) => [`x-${n}`, 'y'])))]],
  ['an Accept of 60,000 types', 200, () => [get(`${SET}?$filter=${WEEK}`, { Accept: 'a/b,'.repeat(30_000) })]],
  ['a Prefer of 6,000 spaces', 200, () => [get(`${SET}?$filter=${WEEK}`, { Prefer: ` ${'odata.maxpagesize= '.repeat(6_000)}x` })]],
  ['a Connection of 40,000 options and 900 fields', 400, () => [get('/V3/LearnerPersonals', { ...Object.fromEntries(times(900, (n) => [`x-${n}`, 'y'])), Connection: times(40_000, () => 'x').join() })]],
  ['a Connection of 100 options and 900 fields', 200, () => [get('/V3/LearnerPersonals', { ...Object.fromEntries(times(900, (n) => [`x-${n}`, 'y'])), Connection: times(100, (n) => `x-${n}`).join() })]],
  ['a Forwarded of 60,000 commas', 200, () => [get(`${SET}?$filter=${WEEK}`, { 'X-Forwarded-For': '1,'.repeat(60_000), Forwarded: 'for=1;' })]],
] // prettier-ignore

/** Reads at the limits, and replies of V3 that try to block the event loop. */
export const hostileReads: readonly NamedRequest[] = [
  [
    'V3 answers 32 reads with 5,000 marks each',
    (share = 1) => ({
      requests: times(32 * share, () => read(`$filter=${WEEK}`)).flat(),
      page: collection(5_000, (n) => JSON.stringify(row(n))),
      status: 200,
    }),
  ],
  ...pages.map(([name, status, make, drips = false]): NamedRequest => [
    `V3 answers ${name}`,
    () => ({ requests: read(`$filter=${WEEK}`), page: make(), drips, status }),
  ]),
  ...heads.map(([name, status, make]): NamedRequest => [name, () => ({ requests: make(), status })]),
]
