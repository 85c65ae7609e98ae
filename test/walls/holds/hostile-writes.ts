import { randomBytes } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

import { batchPath, guid } from '../../support/batch-request.ts'
import { credentials, type HostileRequest, type NamedRequest, times } from './hostile-request.ts'
import type { OutsideRequest } from './outside-world.ts'

const MIB = 1_048_576
/** The maximum number of parts of one batch. */
const PARTS = 20_000

function post(contentType: string, body: string): OutsideRequest {
  const headers = { ...credentials, 'Content-Type': contentType }
  return { method: 'POST', path: batchPath, headers, body: Buffer.from(body) }
}

const raw = (boundary: string, body: string): OutsideRequest =>
  post(`multipart/mixed; boundary=${boundary}`, body)

let batches = 0
function batchOf(records: readonly string[], epilogue = ''): OutsideRequest {
  batches += 1
  const [batch, changeset] = [`batch_${guid(batches)}`, `changeset_${guid(batches)}`]
  const parts = records.map(
    (json, index) =>
      `--${changeset}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: ${index + 1}\r\n\r\n` +
      `POST /x/AttendanceRecords HTTP/1.1\r\nContent-Type: application/json\r\n\r\n${json}\r\n`,
  )
  const head = `--${batch}\r\nContent-Type: multipart/mixed; boundary=${changeset}\r\n\r\n`
  return post(
    `multipart/mixed; boundary=${batch}`,
    `${head}${parts.join('')}--${changeset}--\r\n--${batch}--\r\n${epilogue}`,
  )
}

const record = (n: number, fields: object = {}): string =>
  JSON.stringify({
    Present: true,
    Absent: false,
    Learner: guid(n),
    AttendableEvent: guid(9),
    SchoolAttendanceCode: guid(8),
    MinutesLate: null,
    ...fields,
  })

const members = (count: number): string => `{${times(count, (index) => `"${index.toString(36)}":1`).join()}}`

function gzipped(request: OutsideRequest): OutsideRequest {
  const body = gzipSync(request.body ?? '')
  return { ...request, headers: { ...request.headers, 'Content-Encoding': 'gzip' }, body }
}

function brotli(request: OutsideRequest): OutsideRequest {
  const body = brotliCompressSync(request.body ?? '', { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
  return { ...request, headers: { ...request.headers, 'Content-Encoding': 'br' }, body }
}

const filler = (bytes: number, text = '\0'): string => text.repeat(bytes / text.length)

const folded = (n: number): string =>
  `--b\r\nContent-Type: application/http\r\nX: y\r\n${times(90, () => ` ${'z'.repeat(700)}`).join('\r\n')}\r\n\r\nPOST /AttendanceRecords HTTP/1.1\r\n\r\n${record(n)}\r\n`
const emptyChangeset = (n: number): string =>
  `--b\r\nContent-Type: multipart/mixed; boundary=c${n}\r\n\r\n--c${n}--\r\n`
const unmapped = Object.fromEntries(times(40, (k) => [`f${k}`, 1]))

const writes: readonly [name: string, status: number, make: (share: number) => OutsideRequest][] = [
  ['20,000 records', 200, () => batchOf(times(PARTS, record))],
  ['20,000 records of one key', 200, () => batchOf(times(PARTS, () => record(1)))],
  ['20,000 records with 40 unmapped members', 200, () => batchOf(times(PARTS, (n) => record(n, unmapped)))],
  ['20,000 empty records', 200, (share) => batchOf(times(PARTS * share, () => ''))],
  ['20,000 empty parts', 400, () => raw('b', `${'--b\r\n\r\n'.repeat(PARTS)}--b--\r\n`)],
  ['20,000 changesets', 200, () => raw('b', `${times(PARTS, emptyChangeset).join('')}--b--\r\n`)],
  ['31 records of 1 MiB', 200, (share) => batchOf(times(31 * share, (n) => record(n, { Comment: 'x'.repeat(MIB - 1_000) })))],
  ['a record of 2.2 M members', 200, () => batchOf([members(2_200_000)])],
  ['31 records of 1 MiB that do not compress', 200, () => batchOf(times(31, (n) => record(n, { Comment: randomBytes(0.74 * MIB).toString('base64') })))],
  ['31 records of 500 K escapes', 200, (share) => batchOf(times(31 * share, (n) => record(n, { Comment: '#' }).replace('#', '\\n'.repeat(500 * 1_024))))],
  ['31 records nested in brackets', 200, () => batchOf(times(31, () => `{"x":${'['.repeat(500_000)}${']'.repeat(500_000)}}`))],
  ['lines that look like a delimiter', 400, () => raw('b', `--b\r\n\r\n${'--bx\n'.repeat(6 * MIB)}\r\n--b--\r\n`)],
  ['lines with another delimiter each', 400, () => raw('b', `${times(150_000, (n) => `--a${n}:\r\n`).join('')}--b\r\n\r\n--b--\r\n`)],
  ['delimiters with padding', 400, () => raw('b', `--b\r\n\r\n${`--b${' '.repeat(250)}x\n`.repeat(130_000)}--b--\r\n`)],
  ['500 parts of folded headers', 200, (share) => raw('b', `${times(500 * share, folded).join('')}--b--\r\n`)],
  ['32 MiB of zeros in gzip', 413, () => gzipped(batchOf([record(1)], filler(32 * MIB - 5_000)))],
  ['31 MiB of line ends in gzip', 413, () => gzipped(batchOf([record(1)], filler(31 * MIB, '\r\n--')))],
  ['31 MiB in brotli', 413, () => brotli(batchOf([record(1)], filler(31 * MIB, 'ab')))],
  ['one record of 90,000 members', 400, () => ({ ...post('application/json', members(90_000)), path: '/V2/Attendance/AttendanceRecords' })],
] // prettier-ignore

export const hostileWrites: readonly NamedRequest[] = writes.map(([name, status, make]) => [
  name,
  (share = 1) => ({ status, requests: [make(share)] }),
])

/** Returns the same request under another name. If the request was sent before, the adapter answers it from the journal. */
export function resent(hostile: HostileRequest): HostileRequest {
  return { ...hostile, name: `${hostile.name}, again` }
}

/** Returns a batch of 30 records, to be sent before the first measurement. With its first batch the adapter loads modules. */
export function warmUp(): HostileRequest {
  return { name: 'a batch of 30 records', status: 200, requests: [batchOf(times(30, record))] }
}
