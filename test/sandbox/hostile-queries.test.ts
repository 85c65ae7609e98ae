import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { shareSandbox } from './share-sandbox.ts'
import { fixed, jsonBody } from './start-sandbox.ts'

/** A time limit in milliseconds that each of these queries meets even on a busy machine. An unbounded query would take minutes. */
const boundMs = 3000

const { url, call } = shareSandbox()

type Answer = Awaited<ReturnType<typeof call>>
const send = (path: string, body?: string, headers = jsonBody): Promise<Answer> =>
  call(body === undefined ? 'GET' : 'POST', path, 'sandbox', body, headers)

/** Sends a request that must be answered in bounded time, and checks that the sandbox still answers other requests. */
async function attack(path: string, body?: string, headers = jsonBody): Promise<Answer> {
  const start = performance.now()
  const answer = await send(path, body, headers)
  expect(performance.now() - start).toBeLessThan(boundMs)
  expect((await send('/V3/LearnerIdentifiers?$top=1&$select=ExternalID')).text).toContain(fixed.learner)
  return answer
}

const option = (name: string, text: string): string => `${name}=${encodeURIComponent(text)}`
const identifiers = (query: string): string => `/V3/LearnerIdentifiers?${query}`
const filtered = (text: string): string => identifiers(option('$filter', text))
/** Returns `inner` between `depth` copies of `open` and `depth` copies of `close`. */
const nest = (depth: number, open: string, inner: string, close: string): string =>
  open.repeat(depth) + inner + close.repeat(depth)
const lambdas = (depth: number, collection: string): string =>
  Array.from({ length: depth }, (_, level) => `${collection}/any(v${level}:`).join('') +
  'false' +
  ')'.repeat(depth)
const day = 'AttendableEventStart eq 2026-03-02T09:00:00Z'

const refused: readonly (readonly [name: string, path: string, place: string])[] = [
  ['10,000 parentheses', identifiers(`$filter=${nest(10_000, '(', 'true', ')')}`), '$filter, character 100'],
  ['10,000 unclosed parentheses', identifiers(`$filter=${'('.repeat(10_000)}`), '$filter, character 100'],
  ['3000 nested nots', identifiers(`$filter=${'not%20'.repeat(3000)}true`), '$filter, character 400'],
  ['3000 minus signs', identifiers(`$filter=${'-'.repeat(3000)}1%20eq%201`), '$filter, character 100'],
  ['200 nested calls', filtered(`${nest(200, 'trim(', 'Surname', ')')} eq 'x'`), '$filter, character 500'],
  ['200 nested lambdas', filtered(lambdas(200, 'A')), '$filter, character'],
  [
    '200 nested $expand options',
    identifiers(option('$expand', nest(200, 'A($expand=', 'A', ')'))),
    '$expand, character',
  ],
  ['aliases that refer to each other', identifiers('$filter=@a&@a=@b&@b=@a'), '$filter, character 0'],
  [
    'aliases that double thirty times',
    identifiers(
      `$filter=@a30&@a0=true&${Array.from({ length: 30 }, (_, n) => `@a${n + 1}=@a${n}%20and%20@a${n}`).join('&')}`,
    ),
    '$filter, character 0',
  ],
  ['40,000 characters', identifiers(`$filter=${'a'.repeat(40_000)}`), '$filter, character 32768'],
  ['6000 terms', identifiers(`$filter=${Array(6000).fill('true').join('+or+')}`), '$filter, character 32768'],
  ['a name of 200 characters', filtered(`${'a'.repeat(200)} eq 1`), '$filter, character 0'],
  // These queries would be too expensive to evaluate.
  [
    '40 nested lambdas that multiply',
    `/V1/LearnerContactDetails?${option('$filter', lambdas(40, 'LearnerContactRelationships'))}`,
    '$filter, character 1',
  ],
  [
    'nested lambdas over the members of groups',
    `/V3/LearnerGroups?${option('$filter', lambdas(6, 'LearnerMedicals'))}`,
    '$filter, character',
  ],
  [
    'nested lambdas over members in $orderby',
    `/V3/LearnerGroups?${option('$orderby', `LearnerMedicals/$count($filter=${lambdas(6, 'LearnerMedicals').replaceAll('LearnerMedicals', '$it/LearnerMedicals')})`)}`,
    '$orderby, character',
  ],
  [
    'nested lambdas in $expand',
    `/V3/LearnerGroups?${option('$expand', `LearnerContactDetails($filter=${lambdas(40, 'LearnerContactRelationships')})`)}`,
    '$expand, character 1',
  ],
  [
    'a pattern with exponential backtracking',
    filtered(`matchesPattern('${'a'.repeat(5000)}b','^(a+)+$')`),
    '$filter, character 0',
  ],
  // These queries have unknown names or wrong types.
  ['an unknown property', filtered("Nothing eq 'x'"), '$filter, character 0'],
  ['an unknown member', filtered("CurrentHouse/Nothing eq 'x'"), '$filter, character 13'],
  ['a property of the JavaScript Object', filtered('constructor/prototype eq null'), '$filter, character 0'],
  ['the JavaScript prototype', filtered('CurrentHouse/__proto__ ne null'), '$filter, character 13'],
  ['an unknown function', filtered('sleep(10) eq 1'), '$filter, character 0'],
  ['text compared with a number', filtered("AgeMonths gt '7'"), '$filter, character 13'],
  ['a number compared with text', filtered('Surname eq 7'), '$filter, character 11'],
  ['quoted text in place of a guid', filtered("ExternalID eq 'x'"), '$filter, character 14'],
  [
    'a collection in place of a value',
    '/V3/LearnerMedicals?$filter=Disabilities%20eq%201',
    '$filter, character 0',
  ],
  ['a property in place of a condition', filtered('Surname'), '$filter, character 0'],
  ['an order by a complex property', identifiers('$orderby=CurrentHouse'), '$orderby, character 0'],
  ['a negative $skip', identifiers('$skip=-1'), '$skip, character 0'],
  ['a huge $top', identifiers(`$top=${'9'.repeat(400)}`), '$top, character'],
  ['a repeated option', identifiers('$top=1&top=1'), '$top, character 0'],
  ['malformed percent-encoding', identifiers('$filter=%ff'), '$filter, character 0'],
  // These queries have SQL or a foreign token in place of a literal, a name or a token.
  ['SQL after a literal', filtered("Surname eq 'x'; DROP TABLE mark; --'"), '$filter, character 14'],
  ['SQL in place of a name', filtered('(SELECT body FROM entity) ne null'), '$filter, character 8'],
  [
    'SQL in $orderby',
    identifiers(option('$orderby', 'Surname; DELETE FROM learner')),
    '$orderby, character 7',
  ],
  ['SQL in $select', identifiers(option('$select', 'Surname,(SELECT 1)')), '$select, character 8'],
  [
    'SQL in $expand',
    `/V3/LearnerMedicals?${option('$expand', "Disabilities' OR 1=1")}`,
    '$expand, character 12',
  ],
  [
    'SQL in $skiptoken',
    identifiers(option('$skiptoken', '0 UNION SELECT body FROM entity')),
    '$skiptoken, character 0',
  ],
  ['a negative token', identifiers('$skiptoken=-5'), '$skiptoken, character 0'],
  [
    'an incomplete token of attendance records',
    `/Attendance/V3/AttendanceRecords?${option('$filter', day)}&$skiptoken=1.2`,
    '$skiptoken, character 0',
  ],
  [
    'SQL in a token of attendance records',
    `/Attendance/V3/AttendanceRecords?${option('$filter', day)}&${option('$skiptoken', '1.1.1 OR 1=1')}`,
    '$skiptoken, character 0',
  ],
  [
    'a token of another collection',
    `/Attendance/V3/AttendanceRecords?${option('$filter', day)}&$skiptoken=1000`,
    '$skiptoken, character 0',
  ],
  [
    'SQL after a guid',
    `/Attendance/V3/AttendanceRecords?${option('$filter', `Attendee/ExternalID eq ${fixed.learner}' OR '1'='1`)}`,
    '$filter, character',
  ],
]

test.each(refused)(
  'the sandbox rejects the hostile query with %s, and names the position',
  async (_name, path, place) => {
    const { status, text } = await attack(path)
    expect(status).toBe(400)
    const { error } = JSON.parse(text) as { error: { code: string; message: string } }
    expect(error.code).toBe('InvalidQuery')
    expect(error.message).toContain(`(${place}`)
    expect(error.message).toMatch(/character \d+\)\. /)
    expect(text.length).toBeLessThan(1000)
  },
)

describe('SQL inside a literal of a query to the sandbox', () => {
  const texts = ["x' OR '1'='1", "'; DROP TABLE mark; --", '" OR 1=1 --', '%', '_', '\\', '\u0000', '🦉']
  const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

  test.each(texts)('is treated as plain text: %j', async (text) => {
    const queries = [
      filtered(`Surname eq ${quoted(text)}`),
      filtered(`contains(Surname,${quoted(text)})`),
      filtered(`Surname in (${quoted(text)})`),
      identifiers(`$filter=Surname%20eq%20@a&${option('@a', quoted(text))}`),
      `/Attendance/V3/AttendanceRecords?${option('$filter', `${day} and Qualifier/Comment eq ${quoted(text)}`)}`,
      `/V2/Attendance/AttendanceRecords?${option('$filter', `${day} and Comment eq ${quoted(text)}`)}`,
    ]
    for (const query of queries) {
      const { status, text: body } = await attack(query)
      expect([query, status, (JSON.parse(body) as { value: unknown[] }).value]).toEqual([query, 200, []])
    }
  })

  test.each(texts)('matches no entity if the text is a key: %j', async (text) => {
    const key = encodeURIComponent(`(${quoted(text)})`)
    for (const path of [
      `/V3/LearnerIdentifiers${key}`,
      `/V3/LearnerGroups(ExternalID=${fixed.learner},GroupType=${encodeURIComponent(quoted(text))})`,
      `/Attendance/V3/AttendanceRecords${key}`,
      `/V2/Attendance/AttendanceRecords${key}`,
    ])
      expect([path, (await attack(path)).status]).toEqual([path, 404])
  })

  test('writes and deletes nothing', async () => {
    expect(JSON.parse((await send('/_sandbox/effects')).text)).toEqual([])
    expect((await send('/V3/LearnerIdentifiers/$count')).text).toBe('33')
  })
})

test('the sandbox returns only rows that match the filter, even for a tampered page token', async () => {
  const two = `${day} and Attendee/ExternalID in (${fixed.learner},${fixed.otherLearner})`
  const path = `/Attendance/V3/AttendanceRecords?${option('$filter', two)}`
  for (const token of ['0.0.0', '999999999.0.0', '1.999999999.0', '1.0.999999999']) {
    const { status, text } = await attack(`${path}&$skiptoken=${token}`)
    const { value } = JSON.parse(text) as { value: { Attendee: { ExternalID: string } }[] }
    expect(status).toBe(200)
    const learners = value.map(({ Attendee }) => Attendee.ExternalID)
    expect(learners.filter((id) => id !== fixed.learner && id !== fixed.otherLearner)).toEqual([])
  }
})

describe('a request to the sandbox that is too large or malformed', () => {
  test.each([
    ['1 MiB of filter', `$filter=${'a'.repeat(1_048_576)}`],
    ['100,000 terms', `$filter=${Array(100_000).fill('true').join('+or+')}`],
    ['20 MiB', 'a'.repeat(20 * 1_048_576)],
  ])('gets a complete 431 reply if its request line has %s', async (_name, query) => {
    expect(await attack(identifiers(query))).toEqual({
      status: 431,
      text: expect.stringMatching(/^\{"statusCode":431,"message":"[^"]*too long[^"]*"\}$/) as unknown,
    })
  })

  test('gets 400 if it is too large inside a batch, and no request of the batch runs', async () => {
    const long = `LearnerIdentifiers?$filter=${Array(100_000).fill('true').join('+or+')}`
    const json = JSON.stringify({ requests: [{ id: '1', method: 'GET', url: long }] })
    expect((await attack('/V3/$batch', json)).status).toBe(400)
    const part = `--b\r\nContent-Type: application/http\r\n\r\nGET ${long} HTTP/1.1\r\n\r\n\r\n--b--\r\n`
    const multipart = { 'Content-Type': 'multipart/mixed; boundary=b' }
    expect((await attack('/V3/$batch', part, multipart)).status).toBe(400)
  })

  test('gets 400 if it is not HTTP at all', async () => {
    const socket = connect(Number(new URL(url()).port), '127.0.0.1')
    const pieces: string[] = []
    socket.setEncoding('latin1').on('data', (piece: string) => pieces.push(piece))
    socket.write('\u0016\u0003\u0001 no request\r\n\r\n')
    await new Promise((resolve) => socket.once('end', resolve))
    socket.destroy()
    expect(pieces.join('')).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[^]*\{"statusCode":400,/)
  })
})
