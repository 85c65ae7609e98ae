import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

import { AdapterError } from '../../errors.ts'
import { readBody } from '../../http/body.ts'
import { readClientCredentials } from '../../http/client-credentials.ts'
import { checkHost } from '../../http/address.ts'
import { readRecordedRequest } from '../../http/recorded-request.ts'
import { takeTarget } from '../../http/request-target.ts'
import { MAX_HEADER_BYTES } from '../../http/server.ts'
import { createSlicing, runInSlices } from '../../http/slices.ts'
import {
  batchPath,
  describeMisencoding,
  type Finding,
  guessBoundary,
  isUtf16,
  toFinding,
} from '../../v2/index.ts'

interface OpenedRecording {
  /** The decompressed body, or `undefined` if the file has no readable request. */
  readonly body: Buffer | undefined
  readonly contentType: string | undefined
  /** The header fields. A body without a head has only the Content-Type. */
  readonly headers: IncomingHttpHeaders
  /** The faults for which the adapter would refuse the request before it decodes the batch. */
  readonly findings: readonly Finding[]
}

const slicing = createSlicing()

/**
 * Opens a file that contains the body of a batch or a whole HTTP request. For a body without a head, `guessBoundary` finds the boundary.
 */
export async function openRecording(bytes: Buffer, maxBodyBytes: number): Promise<OpenedRecording> {
  const kind = await kindOf(bytes)
  const other = kind === 'else' ? findOther(bytes) : kind === 'request' ? findLineEnds(bytes) : undefined
  if (other !== undefined) return { body: undefined, contentType: undefined, headers: {}, findings: [other] }
  if (kind !== 'request') {
    const contentType = contentTypeOf(await runInSlices(guessBoundary(bytes), slicing.open()))
    return { body: bytes, contentType, headers: { 'content-type': contentType }, findings: [] }
  }
  const { bytes: wire, missing, isConverted, isFramed } = toWireBytes(bytes)
  const findings: Finding[] = []
  if (isConverted) findings.push(bareLfInHead)
  if (!isFramed) findings.push(noLength)
  if (missing > 0) findings.push(toFinding(tooShort(missing)))
  const onMore = (isRequest: boolean): void => {
    findings.push(isRequest ? secondRequest : bytesBehind)
  }
  try {
    return await readRecordedRequest(wire, (request) => openRequest(request, maxBodyBytes, findings), onMore)
  } catch (cause) {
    return { body: undefined, contentType: undefined, headers: {}, findings: [...findings, findingOf(cause)] }
  }
}

const notABatch = (message: string, remedy: string): Finding => {
  return { severity: 'error', code: 'notABatch', message, remedy }
}

const BATCH_FORM = 'A batch is multipart/mixed with one JSON record in each part, as the README shows'

/** Describes why a file cannot be a batch, more helpfully than a decoder could. Returns `undefined` if the file may be a batch. */
function findOther(bytes: Buffer): Finding | undefined {
  if (bytes.length === 0)
    return notABatch('The file is empty.', 'Record the request again, and wait until the file is complete.')
  if (isUtf16(bytes))
    return notABatch(
      'The file is UTF-16, which no V2 client sends.',
      'Save the bytes as they were sent: PowerShell writes UTF-16 with >, and UTF-8 with Set-Content -Encoding utf8.',
    )
  if (isJson(bytes))
    return notABatch(
      'The file is JSON, not a batch.',
      `${BATCH_FORM}. Post a single record to AttendanceRecords instead.`,
    )
  if (/^--[^\r\n]*$/.test(bytes.toString('latin1')))
    return notABatch(
      'The file has no line ends, so no line of it is a boundary.',
      'Keep the line ends: curl removes them with --data, and keeps them with --data-binary.',
    )
  return /^--/m.test(bytes.toString('latin1'))
    ? undefined
    : notABatch('The file is not a batch: no line begins with a boundary.', `${BATCH_FORM}.`)
}

/** Finds line ends that make the head of a request invalid HTTP, except bare LF, which `toWireBytes` repairs. */
function findLineEnds(bytes: Buffer): Finding | undefined {
  const firstLine = bytes.subarray(0, bytes.indexOf('\n') + 1)
  const message = firstLine.includes('\r\r\n') ? describeMisencoding(firstLine) : undefined
  return message === undefined ? undefined : toFinding(new AdapterError('ADP_BODY', message))
}

/** Returns true if the first and last character of a file look like JSON. Parsing a large document would take long. */
function isJson(bytes: Buffer): boolean {
  const text = bytes.toString('latin1').trim()
  return /^[{[]/.test(text) && /[}\]]$/.test(text.slice(-1))
}

const bareLfInHead: Finding = {
  severity: 'note',
  code: 'bareLfInHead',
  message: 'The lines of the head end in a bare LF. These lines are read as if they ended in CRLF.',
  remedy: 'Record the bytes as they were sent: with bare LF the request is not valid HTTP.',
}

const noLength: Finding = {
  severity: 'note',
  code: 'noContentLength',
  message:
    'The head has neither Content-Length nor Transfer-Encoding. Everything after it is read as the body.',
  remedy:
    'Record the request with its Content-Length or Transfer-Encoding. Without them, a server would read no body.',
}

const secondRequest: Finding = {
  severity: 'warning',
  code: 'secondRequest',
  message: 'A second request follows, which is not checked.',
  remedy: 'Record one request in a file.',
}

const bytesBehind: Finding = {
  severity: 'error',
  code: 'bytesAfterRequest',
  message:
    'The bytes after the request are not HTTP. The adapter would reply 400 and close the connection, and the reply to the batch may be lost.',
  remedy: 'If an editor changed the body, correct Content-Length. Record one request in a file.',
}

function tooShort(missing: number): AdapterError {
  return new AdapterError(
    'ADP_BODY',
    `Content-Length announces ${missing} more bytes than the recording has. The adapter would wait for these bytes and post nothing.`,
  )
}

/** Returns the content type of a batch with this boundary. The default is a boundary that no batch uses. */
export function contentTypeOf(boundary = 'none'): string {
  const isToken = /^[\w'+.-]+$/.test(boundary)
  return `multipart/mixed; boundary=${isToken ? boundary : `"${boundary.replaceAll(/["\\]/g, '\\$&')}"`}`
}

async function openRequest(
  request: IncomingMessage,
  maxBodyBytes: number,
  findings: Finding[],
): Promise<OpenedRecording> {
  const check = (rule: () => void): void => {
    try {
      rule()
    } catch (cause) {
      findings.push(findingOf(cause))
    }
  }
  check(() => checkTarget(request))
  check(() => checkHost(request))
  check(() => readClientCredentials(request.headers))
  const body = await readBody(request, {
    maxBytes: maxBodyBytes,
    contentEncoding: request.headers['content-encoding'],
    contentLength: request.headers['content-length'],
  }).catch((cause: unknown) => {
    findings.push(findingOf(cause))
    return undefined
  })
  return { body, contentType: request.headers['content-type'], headers: request.headers, findings }
}

function checkTarget(request: IncomingMessage): void {
  if (!batchPath.test(takeTarget(request).path)) {
    throw new AdapterError(
      'ADP_NOT_FOUND',
      'The request is not for …/V2/Attendance/$batch, so the adapter would not read it as a batch.',
    )
  }
  if (request.method !== 'POST')
    throw new AdapterError(
      'ADP_METHOD_NOT_ALLOWED',
      'The request has another method than POST, so the adapter would not read it as a batch.',
    )
}

function findingOf(cause: unknown): Finding {
  if (cause instanceof AdapterError) return toFinding(cause)
  throw cause
}

/** Matches a request line. It may follow blank lines (RFC 9112 2.2) and may be faulty, so that `check` can report the fault. */
const REQUEST_LINE =
  /^(?:\r?\n)*(?:(?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE|CONNECT|TRACE)[ \t]|(?!--)\S+[ \t]+\S.*HTTP\/\d)/

/** Returns `request` for an HTTP request with its head, `body` for the body of a batch alone, and `else` for any other file. */
export async function kindOf(bytes: Buffer): Promise<'request' | 'body' | 'else'> {
  if (REQUEST_LINE.test(bytes.toString('latin1', 0, 8_192))) return 'request'
  const boundary = await runInSlices(guessBoundary(bytes), slicing.open())
  return boundary === undefined ? 'else' : 'body'
}

/**
 * Repairs the damage that recorders and editors do to a request. Bare line feeds in the head become CRLF. A head without Content-Length and
 * Transfer-Encoding gets a Content-Length. A Content-Length that is too large is reduced by `missing` bytes. `isFramed` is false if the
 * recorded head did not give the length of the body.
 */
function toWireBytes(bytes: Buffer) {
  const headEnd = headEndOf(bytes)
  // The parser refuses a head of this size anyway, so it is not repaired.
  if (headEnd > MAX_HEADER_BYTES) return { bytes, missing: 0, isConverted: false, isFramed: true }
  const recorded = bytes.toString('latin1', 0, headEnd).trimStart()
  // If a head contains both kinds of line ends, the client sent both, so they are not converted.
  const isConverted = !recorded.includes('\r\n')
  const head = isConverted ? recorded.replaceAll('\n', '\r\n') : recorded
  const rest = bytes.subarray(headEnd)
  const join = (text: string): Buffer => Buffer.concat([Buffer.from(text, 'latin1'), rest])
  if (/^transfer-encoding[ \t]*:/im.test(head))
    return { bytes: join(head), missing: 0, isConverted, isFramed: true }
  const [field, name = '', digits] =
    /^(content-length[ \t]*:[ \t]*)(\d{1,15})(?=[ \t]*\r?$)/im.exec(head) ?? []
  if (field === undefined) {
    const isFramed = /^content-length[ \t]*:/im.test(head)
    const own = head.replace(/\r\n\r\n$/, `\r\nContent-Length: ${rest.length}\r\n\r\n`)
    return { bytes: join(isFramed ? head : own), missing: 0, isConverted, isFramed }
  }
  const missing = Math.max(Number(digits) - rest.length, 0)
  const mended = missing === 0 ? head : head.replace(field, `${name}${rest.length}`)
  return { bytes: join(mended), missing, isConverted, isFramed: true }
}

/** Returns the offset after the blank line that ends the head, or the length of the file if it has no blank line. */
function headEndOf(bytes: Buffer): number {
  const first = bytes.findIndex((byte) => byte !== 0x0d && byte !== 0x0a)
  const crlf = bytes.indexOf('\r\n\r\n', first)
  const lf = bytes.indexOf('\n\n', first)
  if (crlf !== -1 && (lf === -1 || crlf < lf)) return crlf + 4
  return lf === -1 ? bytes.length : lf + 2
}
