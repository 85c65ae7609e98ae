import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../../errors.ts'
import { readBody } from '../../http/body.ts'
import { readClientCredentials } from '../../http/client-credentials.ts'
import { checkHost } from '../../http/address.ts'
import { readRecordedRequest } from '../../http/recorded-request.ts'
import { takeTarget } from '../../http/request-target.ts'
import { batchPath, type Finding, guessBoundary, toFinding } from '../../v2/index.ts'
import { kindOf, toWireBytes } from './recorded-bytes.ts'

/** The batch of a recording, as the adapter would receive it. */
export interface OpenedRecording {
  /** Decompressed; undefined if it cannot be read. */
  readonly body: Buffer | undefined
  readonly contentType: string | undefined
  /** The faults for which the adapter would refuse the request before it decodes the batch. */
  readonly findings: readonly Finding[]
}

/**
 * Opens a recording: the body of a batch, or a whole HTTP request. The head of a request is validated by the rules of the
 * adapter; a body alone gets the boundary that it begins with.
 */
export async function openRecording(bytes: Buffer, maxBodyBytes: number): Promise<OpenedRecording> {
  if (kindOf(bytes) !== 'request')
    return { body: bytes, contentType: contentTypeOf(guessBoundary(bytes)), findings: [] }
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
    return { body: undefined, contentType: undefined, findings: [...findings, findingOf(cause)] }
  }
}

const bareLfInHead: Finding = {
  severity: 'note',
  code: 'bareLfInHead',
  message: 'The lines of the head end in a bare LF. They are read as if they ended in CRLF.',
  remedy: 'Record the bytes as they were sent: with bare LF the request is not valid HTTP.',
}

const noLength: Finding = {
  severity: 'note',
  code: 'noContentLength',
  message:
    'The head has neither Content-Length nor Transfer-Encoding. Everything after it is read as the body.',
  remedy: 'Record the request with its framing: on the wire it would have no body.',
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
    'The bytes after the request are not HTTP: the connection is answered 400 and closed, and the answer to the batch may be lost.',
  remedy: 'Correct Content-Length where an editor changed the body, and record one request in a file.',
}

function tooShort(missing: number): AdapterError {
  return new AdapterError(
    'ADP_BODY',
    `Content-Length announces ${missing} more bytes than the recording has. The adapter would wait for them and post nothing.`,
  )
}

/** The Content-Type of a batch with this boundary, or of a batch without one. */
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
  return { body, contentType: request.headers['content-type'], findings }
}

function checkTarget(request: IncomingMessage): void {
  if (!batchPath.test(takeTarget(request).path)) {
    throw new AdapterError(
      'ADP_NOT_FOUND',
      'The request is not for …/V2/Attendance/$batch, so the adapter does not treat it as a batch.',
    )
  }
  if (request.method !== 'POST')
    throw new AdapterError(
      'ADP_METHOD_NOT_ALLOWED',
      'A batch is sent with POST; this request has another method.',
    )
}

function findingOf(cause: unknown): Finding {
  if (cause instanceof AdapterError) return toFinding(cause)
  throw cause
}
