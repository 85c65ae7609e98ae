/**
 * Writes fixtures/class-register: the register of the sandbox's class (seed 1) for one morning, as a V2 client sends it
 * (service.md 4.2), what V3 gets of it, and the reply. Record 9 names an unknown event, 17 an unknown code, 25 both.
 * Run it after a change of the sandbox's ids: npx node test/e2e/support/make-class-register.ts
 */
import { writeFile } from 'node:fs/promises'

import { createSandbox } from '../../../src/sandbox/index.ts'

interface Samples {
  readonly learners: readonly string[]
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string; readonly code: string }[]
}

const BATCH = 'batch_36522ad7-fc75-4b56-8c71-56071383e77b'
const CHANGESET = 'changeset_77162fcd-b8da-41ac-a9f8-9357efbbd621'
const HOST = 'marks.example'
const PATH = '/sp-api-write-back-partner-live/V2/Attendance'
const NOBODY = 'deadbeef-0000-4000-8000-000000000000'

const sandbox = createSandbox({ seed: 1 })
const { url } = await sandbox.listen()
const { learners, events, codes } = (await (await fetch(`${url}/_sandbox/samples`)).json()) as Samples
await sandbox.close()

const idOf = (code: string): string => codes.find((own) => own.code === code)?.id ?? ''

/** What differs from a pupil who is there: by position in the register, from 1. */
const exceptions: Readonly<Record<number, { code: string; late?: number; comment?: string }>> = {
  4: { code: 'L', late: 12, comment: 'Bus late' },
  11: { code: 'I', comment: 'Parent rang at 8:40' },
  13: { code: 'M', comment: 'Dentist – back at 11' },
  20: { code: 'L', late: 3 },
  22: { code: 'O' },
  28: { code: 'I' },
}

const records = learners.slice(0, 30).map((learner, index) => {
  const number = index + 1
  const { code, late, comment } = exceptions[number] ?? { code: '/' }
  const present = code === '/' || code === 'L'
  return {
    '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord',
    Present: present,
    Absent: !present,
    ...(comment === undefined ? {} : { Comment: comment }),
    Learner: learner,
    AttendableEvent: number === 9 || number === 25 ? NOBODY : (events[0] ?? ''),
    SchoolAttendanceCode: number === 17 || number === 25 ? NOBODY : idOf(code),
    MinutesLate: late ?? null,
  }
})
type PostedRecord = (typeof records)[number]

const body = lines(
  `--${BATCH}`,
  `Content-Type: multipart/mixed; boundary=${CHANGESET}`,
  '',
  ...records.flatMap((record, index) => [
    `--${CHANGESET}`,
    'Content-Type: application/http',
    'Content-Transfer-Encoding: binary',
    `Content-ID: ${index + 1}`,
    '',
    'POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
    'Content-Type: application/json;odata.metadata=minimal',
    'Prefer: return=representation',
    'Accept: application/json;odata.metadata=minimal',
    'Accept-Charset: UTF-8',
    '',
    JSON.stringify(record),
  ]),
  `--${CHANGESET}--`,
  `--${BATCH}--`,
)
const request = lines(
  `POST ${PATH}/$batch HTTP/1.1`,
  `Host: ${HOST}`,
  'Ocp-Apim-Subscription-Key: key-of-a-partner',
  'Authorization: bearer token-of-a-partner',
  `Content-Type: multipart/mixed; boundary=${BATCH}`,
  `Content-Length: ${Buffer.byteLength(body)}`,
  '',
)
const response = lines(
  'HTTP/1.1 200 OK',
  'Content-Type: multipart/mixed; boundary=batchresponse_{{batch}}',
  '',
  ...records.flatMap((record, index) => {
    const faults = faultsOf(record)
    const json = faults.length === 0 ? toCreated(record, index + 1) : toErrors(faults, index + 1)
    return [
      '--batchresponse_{{batch}}',
      'Content-Type: application/http',
      'Content-Transfer-Encoding: binary',
      `Content-ID: ${index + 1}`,
      '',
      faults.length === 0 ? 'HTTP/1.1 201 Created' : 'HTTP/1.1 400 Bad Request',
      'Content-Type: application/json; odata.metadata=minimal',
      `Content-Length: ${lengthOf(json)}`,
      '',
      json,
    ]
  }),
  '--batchresponse_{{batch}}--',
)

const folder = new URL('../../../fixtures/class-register/', import.meta.url)
await writeFile(new URL('body.txt', folder), body)
await writeFile(new URL('request.http', folder), request + body)
await writeFile(new URL('v3-request.json', folder), toJsonLines(records.map(toV3)))
await writeFile(new URL('v3-response.json', folder), toJsonLines(records.map(toAnswer)))
await writeFile(new URL('response.http', folder), response)

function lines(...texts: string[]): string {
  return texts.map((text) => `${text}\r\n`).join('')
}

function toJsonLines(values: unknown[]): string {
  return `[\n${values.map((value) => `  ${JSON.stringify(value)}`).join(',\n')}\n]\n`
}

/** service.md 2.10 and 9, rule 3. */
function toV3(record: PostedRecord): object {
  return {
    ExternalID: '00000000-0000-0000-0000-000000000000',
    Present: record.Present,
    Absent: record.Absent,
    RecordedOn: '{{now}}',
    ChangeProcessName: 'Markbridge',
    Attendee: { ExternalID: record.Learner, Type: 'Learner.Identifier' },
    Event: { ExternalID: record.AttendableEvent, Type: 'Attendance.AttendanceSession' },
    AttendanceCode: { ExternalID: record.SchoolAttendanceCode, Type: 'Attendance.Lookup' },
    Qualifier: { MinutesLate: record.MinutesLate, Comment: record.Comment },
  }
}

/** The entries of the V2 error array that a record gets (service.md 7). */
function faultsOf(record: PostedRecord): { code: string; message: string; target: string }[] {
  const noEvent = {
    code: 'ATT_VAL_2',
    message: 'The AttendableEvent does not exist.',
    target: 'Event/ExternalID',
  }
  const noCode = {
    code: 'ATT_VAL_3',
    message: 'The SchoolAttendanceCode does not exist.',
    target: 'AttendanceCode/ExternalID',
  }
  return [
    ...(record.AttendableEvent === NOBODY ? [noEvent] : []),
    ...(record.SchoolAttendanceCode === NOBODY ? [noCode] : []),
  ]
}

/** What the scripted service answers: null for an echo. */
function toAnswer(record: PostedRecord): object | null {
  const details = faultsOf(record)
  if (details.length === 0) return null
  return {
    status: 400,
    body: { error: { code: 'BadRequest', message: 'The record is not valid.', details } },
  }
}

function toCreated(record: PostedRecord, number: number): string {
  return JSON.stringify({
    '@odata.context': `http://${HOST}${PATH}/$metadata#AttendanceRecords/$entity`,
    ExternalID: `${String(number).padStart(8, '0')}-0000-4000-8000-000000000000`,
    Present: record.Present,
    Absent: record.Absent,
    RecordedOn: '{{now}}',
    ChangeProcessName: 'Markbridge',
    AttendableEventStart: null,
    RecordedBy: null,
    Learner: record.Learner,
    AttendableEvent: record.AttendableEvent,
    SchoolAttendanceCode: record.SchoolAttendanceCode,
    MinutesLate: record.MinutesLate,
    Comment: record.Comment ?? null,
    AttendanceHistorys: [],
  })
}

function toErrors(faults: readonly { code: string; message: string }[], number: number): string {
  return JSON.stringify(
    faults.map(({ code, message }) => ({
      Message: message,
      ErrorCode: code,
      ResourceIdentifier: '',
      SequenceID: `{{sequence${number}}}`,
    })),
  )
}

/** The length in bytes once a time or a guid stands for each placeholder. */
function lengthOf(template: string): number {
  const settled = template
    .replaceAll('{{now}}', '2026-03-02T09:00:00.000Z')
    .replaceAll(/\{\{\w+\}\}/g, NOBODY)
  return Buffer.byteLength(settled)
}
