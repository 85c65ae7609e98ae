import type { ErrorCode } from '../../errors.ts'

/** `error`: the batch or a record of it is refused; `warning`: something surprises; `note`: accepted, but worth to know. */
export type Severity = 'error' | 'warning' | 'note'

/** A finding about a batch, with a remedy. It never contains a value of a record. */
export interface Finding {
  readonly severity: Severity
  /** Stable name for programs: an error code, or a word such as `bareLf`. */
  readonly code: string
  readonly message: string
  readonly remedy: string
  /** Byte offset from 0, where known. */
  readonly offset?: number
  /** Position of the record from 1, where known. */
  readonly part?: number
}

/** The remedy for each error of the envelope or a record. */
export const remedies: Partial<Readonly<Record<ErrorCode, string>>> = {
  ADP_MEDIA_TYPE: 'Send Content-Type: multipart/mixed; boundary=<boundary>.',
  ADP_BOUNDARY:
    'Name one boundary of 1 to 70 characters, in quotes up to 200; quote it when it holds other than letters, digits, - and _.',
  ADP_TRUNCATED:
    'Send the body whole: it ends with --<changeset>-- and --<batch>-- of the same boundaries it opened with.',
  ADP_NESTING: 'Give batch and changeset different boundaries, and put changesets beside each other.',
  ADP_PART_TYPE:
    'Give every part the header Content-Type: application/http, or multipart/mixed for a changeset.',
  ADP_PART_ENCODING:
    'Send Content-Transfer-Encoding: binary, or leave the header out; a changeset may also have 7bit or 8bit.',
  ADP_HEADER: 'Write header lines as "Name: value" and end them with one blank line.',
  ADP_CONTENT_ID: 'Send one Content-ID for each part.',
  ADP_REQUEST_LINE:
    'After the blank line that ends the MIME headers send "POST <path>/AttendanceRecords HTTP/1.1".',
  ADP_TARGET:
    'Post to …/AttendanceServiceFarm1/OData/V1/AttendanceRecords, relative or as an HTTP URL without credentials, on one of serviceHosts where the partner has them.',
  ADP_LIMIT: 'Send headers and boundaries of ordinary size, and no lines that only look like delimiters.',
  ADP_TOO_LARGE: 'Split the batch; one batch may be sent using more than one POST.',
  ADP_CONTENT_ENCODING: 'Compress the body with gzip, deflate or br, or send it as it is.',
  ADP_BODY: 'Send the body whole, with a Content-Length of its bytes, and its compression complete.',
  ADP_HOST: 'Send one Host header with a name or an address, and a port where it is needed.',
  ADP_NOT_FOUND: 'Send the batch to …/V2/Attendance/$batch.',
  ADP_PATH: 'Send the plain path …/V2/Attendance/$batch.',
  ADP_METHOD_NOT_ALLOWED: 'Send the batch with POST.',
  ADP_SUBSCRIPTION_KEY:
    'Send Ocp-Apim-Subscription-Key on the batch request. Where it was taken out of a recording, any text in its place will do.',
  ADP_TOKEN:
    'Send Authorization: bearer <token> on the batch request. Where it was taken out of a recording, any text in its place will do.',
  ADP_METHOD: 'Send only POST in a batch; read with GET outside of it.',
  ADP_JSON: 'Send one JSON object as RFC 8259 has it, each name once.',
  ADP_CHARSET: 'Encode the record in UTF-8, or in the single-byte charset that its Content-Type names.',
  ADP_FIELD: 'Send the field with the type of the V2 record.',
  ADP_RECORD_LIMIT: 'Send only the members of the V2 record, with comments of ordinary length.',
  ADP_UNMAPPED_FIELD: 'Leave the field out: V3 has no place for it.',
}
