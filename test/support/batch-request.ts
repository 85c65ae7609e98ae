import { readMultipart, readPart } from '../v2/support/read-multipart.ts'
import { requestText } from './raw-client.ts'
import type { Adapter, Reply } from './start-adapter.ts'

/** The path of the batch write. Clients may use any prefix. */
export const batchPath = '/sp-api-write-back-partner-live/V2/Attendance/$batch'

const BATCH = 'batch_0f3c2a10-0000-4000-8000-00000000000b'
const CHANGESET = 'changeset_0f3c2a10-0000-4000-8000-00000000000c'

/** Returns the GUID that ends in the digits of `n`. */
export function guid(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
}

/** Returns the flat record of learner `n`, as a client posts it. */
export function flatRecord(n: number, fields: object = {}): object {
  return {
    Present: true,
    Absent: false,
    Learner: guid(n),
    AttendableEvent: guid(900_000),
    SchoolAttendanceCode: guid(800_000),
    MinutesLate: null,
    ...fields,
  }
}

/** Returns the flat records of learners 1 to `count`. */
export function flatRecords(count: number): object[] {
  return Array.from({ length: count }, (_, index) => flatRecord(index + 1))
}

export interface BatchText {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface BatchSpelling {
  readonly inner?: readonly string[]
  readonly batch?: string
  readonly changeset?: string
  readonly boundary?: string
}

/**
 * Builds a batch of one changeset (service.md 4.2). A record that is a string is used unchanged. `inner` are additional headers of every
 * request inside, `batch` and `changeset` are the delimiters, and `boundary` is the boundary in the outer header.
 */
export function batchOf(
  records: readonly (object | string)[],
  { inner = [], batch = BATCH, changeset = CHANGESET, boundary = batch }: BatchSpelling = {},
): BatchText {
  const parts = records.map((record, index) => [
    `--${changeset}`,
    'Content-Type: application/http',
    'Content-Transfer-Encoding: binary',
    `Content-ID: ${index + 1}`,
    '',
    'POST /sp-api/AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
    'Content-Type: application/json;odata.metadata=minimal',
    ...inner,
    '',
    typeof record === 'string' ? record : JSON.stringify(record),
  ])
  const lines = [`--${batch}`, `Content-Type: multipart/mixed; boundary=${changeset}`, '', ...parts.flat()]
  lines.push(`--${changeset}--`, `--${batch}--`, '')
  return { headers: { 'Content-Type': `multipart/mixed; boundary=${boundary}` }, body: lines.join('\r\n') }
}

export function postBatch(
  adapter: Adapter,
  batch: BatchText,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return adapter.request('POST', batchPath, { headers: { ...batch.headers, ...headers }, body: batch.body })
}

export interface ReplyPart {
  readonly contentId: string | undefined
  readonly status: number
  /** The parsed body, or `undefined` if the part has no body. */
  readonly json: unknown
}

/** Reads a flat batch reply. Throws if the reply is not well-formed. */
export function readBatchReply(reply: Pick<Reply, 'headers' | 'text'>): ReplyPart[] {
  const boundary = /^multipart\/mixed; boundary=(batchresponse_[0-9a-f-]{36})$/.exec(
    String(reply.headers['content-type']),
  )?.[1]
  if (boundary === undefined) throw new Error(`not a batch reply: ${String(reply.headers['content-type'])}`)
  return readMultipart(reply.text, boundary).map(({ headers, content }) => readHttpPart(headers, content))
}

function readHttpPart(headers: Readonly<Record<string, string>>, content: string): ReplyPart {
  const [, status, rest = ''] = /^HTTP\/1\.1 (\d{3}) [^\r\n]+\r\n([^]*)$/.exec(content) ?? []
  const inner = readPart(rest)
  const json: unknown = inner.content === '' ? undefined : JSON.parse(inner.content)
  return { contentId: headers['Content-ID'], status: Number(status), json }
}

/** The outcome in a part: its status, and either the codes of its errors or `record`. */
export interface PartOutcome {
  readonly status: number
  readonly codes: unknown
}

export function failuresOf(parts: readonly ReplyPart[]): PartOutcome[] {
  return parts.map(({ status, json }) => ({
    status,
    codes: Array.isArray(json) ? json.map((entry: { ErrorCode?: unknown }) => entry.ErrorCode) : 'record',
  }))
}

/** Returns the outcome in each part of a batch reply. */
export const outcomesOf = (reply: Pick<Reply, 'headers' | 'text'>): PartOutcome[] =>
  failuresOf(readBatchReply(reply))

/** Returns the status of each part of a batch reply. */
export const statusesOf = (reply: Pick<Reply, 'headers' | 'text'>): number[] =>
  readBatchReply(reply).map(({ status }) => status)

/** Returns the outcomes of this many accepted records. */
export const created = (count: number): PartOutcome[] =>
  Array.from({ length: count }, () => ({ status: 201, codes: 'record' }))

export async function postRecords(
  adapter: Adapter,
  records: readonly (object | string)[],
  headers: Record<string, string> = {},
): Promise<ReplyPart[]> {
  return readBatchReply(await postBatch(adapter, batchOf(records), headers))
}

/** Returns the text of the request that posts a batch, for a raw connection. */
export const batchText = ({ headers, body }: BatchText): string =>
  requestText(
    `POST ${batchPath}`,
    `Content-Type: ${headers['Content-Type'] ?? ''}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`,
    body,
  )
