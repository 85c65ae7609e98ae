import type { ErrorCode } from '../../errors.ts'
import type { Steps } from '../../http/slices.ts'
import type { Batch, BatchPart } from '../batch/decode-batch.ts'

/** `error`: the adapter refuses the batch or a record. `warning`: the result may surprise the client. `note`: a harmless deviation. */
export type Severity = 'error' | 'warning' | 'note'

/** A finding about a batch, with its remedy. A finding never contains a value of a record. */
export interface Finding {
  readonly severity: Severity
  /** The stable name of the finding for programs: an error code, or a word such as `bareLf`. */
  readonly code: string
  readonly message: string
  readonly remedy: string
  /** The byte offset in the body, counted from 0, if it is known. */
  readonly offset?: number
  /** The position of the record in the batch, counted from 1, if it is known. */
  readonly part?: number
}

export const remedies: Partial<Readonly<Record<ErrorCode, string>>> = {
  ADP_MEDIA_TYPE: 'Send Content-Type: multipart/mixed; boundary=<boundary>.',
  ADP_BOUNDARY:
    'Name one boundary of 1 to 70 characters, or up to 200 in quotes. Quote it if it has characters other than letters, digits, - and _.',
  ADP_TRUNCATED:
    'Send the body whole. It must end with --<changeset>-- and --<batch>--, with the boundaries that opened it.',
  ADP_NESTING:
    'Give the batch and its changesets different boundaries, and put changesets beside each other.',
  ADP_PART_TYPE:
    'Give every part the header Content-Type: application/http, or multipart/mixed for a changeset.',
  ADP_PART_ENCODING:
    'Send Content-Transfer-Encoding: binary, or omit the header. A changeset may also have 7bit or 8bit.',
  ADP_HEADER: 'Write header lines as "Name: value" and end them with one blank line.',
  ADP_CONTENT_ID: 'Send one Content-ID for each part.',
  ADP_REQUEST_LINE:
    'After the blank line that ends the MIME headers, send "POST <path>/AttendanceRecords HTTP/1.1".',
  ADP_TARGET:
    'Post to …/AttendanceServiceFarm1/OData/V1/AttendanceRecords, as a relative path or as an HTTP URL without credentials. If the partner has serviceHosts, the URL must name one of them.',
  ADP_LIMIT: 'Send headers and boundaries of ordinary size, and no lines that resemble delimiters.',
  ADP_TOO_LARGE: 'Split the batch into several POST requests.',
  ADP_CONTENT_ENCODING: 'Compress the body with gzip, deflate or br, or send it without compression.',
  ADP_BODY:
    'Send the whole body in UTF-8, with CRLF line ends, complete compression and a Content-Length that counts its bytes.',
  ADP_HOST: 'Send one Host header with a name or an address, and a port if one is needed.',
  ADP_NOT_FOUND: 'Send the batch to …/V2/Attendance/$batch.',
  ADP_PATH: 'Send the plain path …/V2/Attendance/$batch.',
  ADP_METHOD_NOT_ALLOWED: 'Send the batch with POST.',
  ADP_SUBSCRIPTION_KEY:
    'Send Ocp-Apim-Subscription-Key with the batch request. If the header was removed from a recording, put any text in its place.',
  ADP_TOKEN:
    'Send Authorization: bearer <token> with the batch request. If the header was removed from a recording, put any text in its place.',
  ADP_METHOD: 'Send only POST in a batch. Read with GET outside the batch.',
  ADP_JSON: 'Send one JSON object as in RFC 8259, with each name only once.',
  ADP_CHARSET: 'Encode the record in UTF-8, or in the single-byte charset that its Content-Type names.',
  ADP_FIELD: 'Send the field with the type that it has in the V2 record.',
  ADP_RECORD_LIMIT: 'Send only the members of the V2 record, and shorten long comments.',
  ADP_UNMAPPED_FIELD: 'Omit the field. V3 has no place for it.',
}

/** A rule for parts. All parts that break the rule are reported as one finding, with the first part and the number of other parts. */
interface Rule {
  readonly code: string
  readonly severity: Finding['severity']
  readonly message: string
  readonly remedy: string
  /** Returns true if the part breaks the rule. `head` is the text before the body. `json` returns the text of `readJson`. */
  readonly applies: (part: BatchPart, head: string, json: () => string) => boolean
}

const QUOTE = 0x22
const APOSTROPHE = 0x27
const BACKSLASH = 0x5c
const CREDENTIALS = /^(?:authorization|cookie|host|forwarded|x-forwarded-[a-z]+)[ \t]*:/im
const LENGTH = /^content-length[ \t]*:([^\r\n]*)/im

/** Returns the Content-Length among the HTTP headers. Ignores a Content-Length among the MIME headers, which counts the whole part. */
function lengthOf(head: string): string | undefined {
  const mimeEnd = head.search(/\n\r?\n/)
  return mimeEnd < 0 ? undefined : LENGTH.exec(head.slice(mimeEnd))?.[1]?.trim()
}

function hasSingleQuotes(json: string): boolean {
  let isInString = false
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) isInString = !isInString
    else if (isInString) at += code === BACKSLASH ? 1 : 0
    else if (code === APOSTROPHE) return true
  }
  return false
}

const rules: readonly Rule[] = [
  {
    code: 'singleQuotes',
    severity: 'note',
    message: 'has JSON strings in single quotes, which are read as the service reads them',
    remedy: 'Use double quotes, as RFC 8259 requires. Within single quotes an apostrophe needs a backslash.',
    applies: (_part, _head, json) => hasSingleQuotes(json()),
  },
  {
    code: 'noContentId',
    severity: 'note',
    message: 'has no Content-ID, so its reply can be recognised only by its position',
    remedy: 'Send Content-ID: 1, 2, … in the MIME headers of each part.',
    applies: (part) => part.contentId === undefined,
  },
  {
    code: 'innerHeadersIgnored',
    severity: 'warning',
    message: 'has credentials, host or forwarding headers of its own, which are never forwarded',
    remedy: 'Send credentials only with the batch request.',
    applies: (_part, head) => CREDENTIALS.test(head),
  },
  {
    code: 'wrongContentLength',
    severity: 'note',
    message: 'has a Content-Length that is not the length of its body, so the delimiter decides',
    remedy: 'Count bytes and not characters, or omit the header.',
    applies: (part, head) => (lengthOf(head) ?? `${part.end - part.start}`) !== `${part.end - part.start}`,
  },
  {
    code: 'presentAndAbsent',
    severity: 'warning',
    message: 'has Present and Absent both true, which only the service can accept or reject',
    remedy: 'Set either Present or Absent, as the attendance code requires.',
    applies: (part) => part.record?.Present === true && part.record.Absent,
  },
  {
    code: 'unmappedFields',
    severity: 'warning',
    message: 'has fields outside the V2 write form, which are dropped and counted by default',
    remedy: 'Omit them, or set unmappedFields of the partner to strict, pass or report.',
    applies: (part) => part.record?.unmapped !== undefined,
  },
  {
    code: 'convertedFields',
    severity: 'note',
    message:
      'has numbers or booleans as text, or guids in another form, which are read as V2 reads them, and counted',
    remedy: 'Send true, 12 and "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx". V3 accepts no other form.',
    applies: (part) => part.record?.converted !== undefined,
  },
  {
    code: 'noChangeset',
    severity: 'note',
    message: 'is directly under the batch and not in a changeset, which is accepted',
    remedy: 'Put the parts into a changeset, as the V2 interface describes.',
    applies: (part) => part.changeset === undefined,
  },
]

const MIN_PART_WORK = 1_024

/** Reports deviations that the adapter accepts, in the parts of a batch with a sound envelope (batch-wire F10, F16, F19, F24, 4). */
export function* inspectParts(bytes: Buffer, batch: Batch): Steps<readonly Finding[]> {
  const found = new Map<Rule, { first: BatchPart; count: number }>()
  let headStart = 0
  for (const part of batch.parts) {
    const between = bytes.toString('latin1', headStart, part.start)
    const head = between.slice(between.lastIndexOf('\n--') + 1)
    yield Math.max(MIN_PART_WORK, part.end - headStart)
    headStart = part.end
    const json = (): string => readJson(bytes, part)
    for (const rule of rules) {
      if (!rule.applies(part, head, json)) continue
      const known = found.get(rule)
      if (known === undefined) found.set(rule, { first: part, count: 1 })
      else known.count += 1
    }
  }
  const findings = [...found].map(([rule, { first, count }]) => toFinding(rule, first, count))
  if (batch.parts.length === 0) findings.push(emptyBatch)
  return [...findings, ...findRepetition(batch.parts, 'contentId'), ...findRepetition(batch.parts, 'key')]
}

/** Returns the JSON of a record that may have single quotes, or an empty string if it has no apostrophe or is too long to search. */
function readJson(bytes: Buffer, { start, end, faults }: BatchPart): string {
  const json = bytes.subarray(start, end)
  const isTooLong = faults?.some(({ code }) => code === 'ADP_RECORD_LIMIT') === true
  return isTooLong || !json.includes(APOSTROPHE) ? '' : json.toString('utf8')
}

const emptyBatch: Finding = {
  severity: 'warning',
  code: 'emptyBatch',
  message: 'The batch has no records.',
  remedy: 'Send one part for each record.',
}

function toFinding(rule: Rule, first: BatchPart, count: number): Finding {
  const others =
    count === 1 ? '' : `. The same is true of ${count - 1} more ${count === 2 ? 'part' : 'parts'}`
  return {
    severity: rule.severity,
    code: rule.code,
    message: `Part ${first.part} ${rule.message}${others}.`,
    remedy: rule.remedy,
    part: first.part,
    offset: first.start,
  }
}

/** Reports the first two parts that have the same Content-ID, or whose records have the same learner and event. */
function findRepetition(parts: readonly BatchPart[], by: 'contentId' | 'key'): Finding[] {
  const firstParts = new Map<string, number>()
  for (const part of parts) {
    const { record } = part
    const key = `${record?.Learner ?? ''} ${record?.AttendableEvent ?? ''}`.toLowerCase()
    const value = by === 'contentId' ? part.contentId : record === undefined ? undefined : key
    if (value === undefined) continue
    const before = firstParts.get(value)
    if (before !== undefined) return [repetition(by, before, part)]
    firstParts.set(value, part.part)
  }
  return []
}

function repetition(by: 'contentId' | 'key', before: number, part: BatchPart): Finding {
  const texts =
    by === 'contentId'
      ? {
          code: 'repeatedContentId',
          message: `Parts ${before} and ${part.part} have the same Content-ID, so their replies can be told apart only by position.`,
          remedy: 'Number all parts: 1, 2, …',
        }
      : {
          code: 'repeatedRecord',
          message: `Parts ${before} and ${part.part} write the same learner and event. The later part counts.`,
          remedy: 'Send one record for each learner and event.',
        }
  return { severity: 'warning', ...texts, part: part.part, offset: part.start }
}
