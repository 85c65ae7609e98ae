import type { RecordedExchange } from '../../../src/compare/recording/exchange.ts'

/** The markers of a write. Each place that a client can fill has a marker, and the reply repeats the markers. */
export const markers = {
  bearer: 'MARKBEARER',
  key: 'MARKKEY',
  inner: 'MARKINNER',
  folded: 'MARKFOLDED',
  query: 'MARKQUERY',
  user: 'MARKUSER',
  cookie: 'MARKCOOKIE',
  learner: 'ab0c1d2e-aaaa-4bbb-8ccc-0123456789ab',
  event: 'cd0c1d2e-aaaa-4bbb-8ccc-0123456789ab',
  comment: 'Markcomment',
  preamble: 'Markpreamble',
  contentId: 'Markcontentid',
  record: 'ef0c1d2e-aaaa-4bbb-8ccc-0123456789ab',
} as const
/** The markers that stand for credentials, which no recording may contain. */
export const credentials: readonly string[] = [
  markers.bearer,
  markers.key,
  markers.inner,
  markers.folded,
  markers.query,
  markers.user,
  markers.cookie,
]

const batchId = 'batch_36522ad7-fc75-4b56-8c71-56071383e77b'
const changesetId = 'changeset_77162fcd-b8da-41ac-a9f8-9357efbbd621'

const markedRecord =
  `{"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord","Present":true,"Absent":false,"Learner":"${markers.learner}",` +
  `"AttendableEvent":"${markers.event}","SchoolAttendanceCode":"9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a","MinutesLate":5,` +
  `"Comment":"${markers.comment}"}`

/** Returns the body of the marked write. If `brokenAt` is given, the body is cut there so that it cannot be decoded. */
export function markedBody(brokenAt?: number): Buffer {
  const lines = [
    `${markers.preamble} of a client`,
    `--${batchId}`,
    `Content-Type: multipart/mixed; boundary=${changesetId}`,
    '',
    `--${changesetId}`,
    'Content-Type: application/http',
    'Content-Transfer-Encoding: binary',
    `Content-ID: ${markers.contentId}`,
    '',
    `POST /OData/V1/AttendanceRecords?subscription-key=${markers.query} HTTP/1.1`,
    'Content-Type: application/json',
    `Authorization: Bearer ${markers.inner}`,
    'X-Anything: first',
    ` ${markers.folded}`,
    `Cookie: a=${markers.cookie}`,
    '',
    markedRecord,
    `--${changesetId}--`,
    `--${batchId}--`,
    '',
  ]
  const body = Buffer.from(lines.join('\r\n'))
  return brokenAt === undefined ? body : body.subarray(0, brokenAt)
}

export function markedReply(): Buffer {
  const part =
    `{"@odata.context":"https://v2.example/V2/Attendance/$metadata#AttendanceRecords/$entity","ExternalID":"${markers.record}",` +
    `"Learner":"${markers.learner}","RecordedOn":"2026-09-07T08:40:01Z","Comment":"${markers.comment}"}`
  const lines = [
    '--batchresponse_1',
    'Content-Type: application/http',
    `Content-ID: ${markers.contentId}`,
    '',
    'HTTP/1.1 201 Created',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(part)}`,
    `Set-Cookie: a=${markers.cookie}`,
    '',
    part,
    '--batchresponse_1--',
    '',
  ]
  return Buffer.from(lines.join('\r\n'))
}

export function markedExchange({
  body = markedBody(),
  contentType = contentTypeOfMarked,
  fields = [],
  ...given
}: Partial<RecordedExchange> & {
  readonly body?: Buffer
  readonly contentType?: string | undefined
  /** The request fields besides its type. */
  readonly fields?: readonly string[]
} = {}): RecordedExchange {
  return {
    kind: 'batch',
    target: `/V2/Attendance/$batch?subscription-key=${markers.query}`,
    request: { fields: ['Content-Type', contentType, ...fields], body },
    reply: {
      status: 200,
      reason: 'OK',
      fields: [
        'Content-Type',
        'multipart/mixed; boundary=batchresponse_1',
        'Set-Cookie',
        `a=${markers.cookie}`,
      ],
      body: markedReply(),
    },
    receivedMs: Date.UTC(2026, 8, 7, 8, 40),
    durationMs: 12,
    ...given,
  }
}

export const contentTypeOfMarked = `multipart/mixed; boundary=${batchId}`
