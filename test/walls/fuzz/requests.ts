import { gzipSync } from 'node:zlib'

import type { Random } from '../../../src/sandbox/random.ts'
import { batchOf, flatRecord } from '../../support/batch-request.ts'
import { mutate, splice } from './mutate.ts'

type Ids = readonly [string, ...string[]]

export interface Seeds {
  /** Complete requests as clients send them. */
  readonly recorded: readonly [Buffer, ...Buffer[]]
  readonly learners: Ids
  readonly events: Ids
  readonly code: string
}

const prefixes = ['', '/sp-api-write-back-partner-live', '/a/b', '/a%20b'] as const
const targets = [
  '/V2/Attendance/$batch', '/v2/attendance/%24batch', '/V2/Attendance/AttendanceRecords', '/V2/Attendance/$metadata', '/V2/Attendance/',
  '/V2/LearnerRegistations?expand=Enrolments', '/Learner/V3/LearnerIdentifiers?$top=2', '/V3/LearnerPersonals', '/V1/LearnerWelfares',
  '/Attendance/V3/AttendanceRecords', '/Learner/V3/LearnerSENLookps', '/healthz', '/readyz', '/metrics', '/nowhere', '*', '/..%2f..',
] as const // prettier-ignore
const methods = [
  'GET', 'GET', 'GET', 'POST', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH',
] as const // prettier-ignore
const options = [
  ({ learners: [learner] }: Seeds) => `$filter=Learner eq ${learner}`,
  () => '$filter=AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-04T00:00:00Z&$top=3',
  () => "$filter=Comment eq 'it''s late' or not (MinutesLate gt 5)&$orderby=RecordedOn desc",
  () => '$filter=AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart lt 2026-08-01T00:00:00Z&$count=true&$select=Learner',
  () => '$skiptoken=AAAAAAAAAAAAAAAAAAAAAAAA',
  () => '$filter=contains(Comment,@a)&@a=%27x%27&$expand=Manager($top=1%3B$skip=1)',
] as const // prettier-ignore
const credentials = [
  'Ocp-Apim-Subscription-Key: sandbox\r\nAuthorization: bearer sandbox\r\n',
  'Ocp-Apim-Subscription-Key: sandbox\r\nAuthorization: bearer sandbox\r\n',
  'Ocp-Apim-Subscription-Key: sandbox\r\nAuthorization: bearer wrong\r\n',
  'Ocp-Apim-Subscription-Key: other\r\n',
  'Authorization: Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOnt9LCJleHAiOi0xfQ.\r\nOcp-Apim-Subscription-Key: sandbox\r\n',
  '',
] as const

/** Draws the bytes of one request. About one request in three is unchanged, and the others are changed somewhere. */
export function drawRequest(seeds: Seeds, random: Random): Buffer {
  const base = random.chance(0.35)
    ? ofAnyLearner(random.pick(seeds.recorded), random)
    : composed(seeds, random)
  if (random.chance(0.3)) return base
  const bytes = random.chance(0.1) ? splice(base, random.pick(seeds.recorded), random) : mutate(base, random)
  return random.chance(0.5) ? withLength(bytes) : bytes
}

/** Bytes that some clients send after a request (batch-wire F33), and bytes that only an attacker sends. */
const tails = [
  '\0', ' ', '\u001a', '--batch_1--\r\n', 'the end', 'GET\r\n\r\n', 'GET / HTTP/1.1\r\nX', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', '\u0016\u0003\u0001\u0000',
] as const // prettier-ignore

/** Draws a complete request of any HTTP version, followed by bytes that are not a request. */
export function drawWithTail(seeds: Seeds, random: Random): Buffer {
  const base = ofAnyLearner(random.pick(seeds.recorded), random)
  const old = random.chance(0.2)
    ? base.toString('latin1').replace(' HTTP/1.1\r\n', ' HTTP/1.0\r\n')
    : undefined
  const request = old === undefined ? base : Buffer.from(old, 'latin1')
  return Buffer.concat([request, Buffer.from(random.pick(tails), 'latin1')])
}

/** Replaces the learner by a random learner, because marks of one learner and event wait for each other. */
function ofAnyLearner(request: Buffer, random: Random): Buffer {
  const digits = random.below(0x1_0000).toString(16).padStart(4, '0')
  const text = request.toString('latin1')
  return Buffer.from(text.replace(/("learner" *: *"[0-9a-f-]{32})[0-9a-f]{4}"/gi, `$1${digits}"`), 'latin1')
}

function composed(seeds: Seeds, random: Random): Buffer {
  if (random.chance(0.4)) return batchRequest(seeds, random)
  const method = random.pick(methods)
  const query = random.chance(0.6) ? `?${encodeURI(random.pick(options)(seeds))}` : ''
  const target = `${random.pick(prefixes)}${random.pick(targets)}${query}`
  const body = method === 'POST' || method === 'PATCH' ? JSON.stringify(recordOf(seeds, random)) : ''
  return request(`${method} ${target}`, random, 'Content-Type: application/json\r\n', Buffer.from(body))
}

function batchRequest(seeds: Seeds, random: Random): Buffer {
  const records = Array.from({ length: random.below(5) }, () => recordOf(seeds, random))
  const changeset = `changeset_${random.below(40)}`
  const { headers, body } = batchOf(records, { batch: `batch_${random.below(40)}`, changeset })
  const type = `Content-Type: ${headers['Content-Type'] ?? ''}\r\n`
  const start = `POST ${random.pick(prefixes)}/V2/Attendance/$batch`
  if (!random.chance(0.1)) return request(start, random, type, Buffer.from(body))
  return request(start, random, `${type}Content-Encoding: gzip\r\n`, gzipSync(body))
}

function recordOf({ learners, events, code }: Seeds, random: Random): object {
  const learner = random.pick(learners)
  return flatRecord(random.below(50), {
    Learner: learner,
    AttendableEvent: random.chance(0.8) ? random.pick(events) : learner,
    SchoolAttendanceCode: random.chance(0.9) ? code : null,
    MinutesLate: random.pick([null, 0, 5, -1, 2.5, '7', 2_147_483_648]),
    Comment: random.pick([null, '', 'late', 'a\r\nb', '--batch_1', '\u0000', '😀'.repeat(40)]),
  })
}

function request(start: string, random: Random, lines: string, body: Buffer): Buffer {
  const host = random.chance(0.97) ? 'Host: 127.0.0.1\r\n' : ''
  const head = `${start} HTTP/1.1\r\n${host}${random.pick(credentials)}${body.length === 0 ? '' : lines}`
  if (random.chance(0.1))
    return Buffer.concat([Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`), chunked(body, random)])
  return Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body])
}

function chunked(body: Buffer, random: Random): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < body.length;) {
    const end = Math.min(body.length, at + 1 + random.below(300))
    pieces.push(Buffer.from(`${(end - at).toString(16)}\r\n`), body.subarray(at, end), Buffer.from('\r\n'))
    at = end
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')])
}

/** Sets Content-Length to the length of the body. Without this, most changes would only produce a body that never arrives. */
function withLength(bytes: Buffer): Buffer {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return bytes
  const head = bytes.toString('latin1', 0, end)
  const right = head.replace(/^content-length: *\d+/im, `Content-Length: ${bytes.length - end - 4}`)
  return Buffer.concat([Buffer.from(right, 'latin1'), bytes.subarray(end)])
}
