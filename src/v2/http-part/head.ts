import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { formatBytes } from '../../http/body.ts'
import type { BatchLimits } from '../limits.ts'
import { readCharset, type RecordCharset } from '../record/decode-record.ts'
import { type HeaderLines, lineEnd, partOf, readHeaders, valuesOf } from './headers.ts'

/** The amount of metadata in the JSON of a reply (OData JSON 3.1). The client requests it in `Accept`. */
export type MetadataLevel = 'none' | 'minimal' | 'full'

export interface Preferences {
  /** True if the record has `Prefer: return=minimal` (RFC 7240 4.2): the reply is 204 instead of 201. */
  readonly prefersMinimal: boolean
  readonly metadata: MetadataLevel
}

/** Reads the values of `Prefer` and `Accept`. Several lines of a header must be joined by commas; a missing header is an empty string. */
export function readPreferences(prefer: string, accept: string): Preferences {
  // OData 4.01 allows `metadata` without the prefix `odata.`.
  const level = /(?<![.\w])(?:odata\.)?metadata\s*=\s*"?(none|minimal|full)\b/i
    .exec(accept)?.[1]
    ?.toLowerCase()
  return {
    prefersMinimal: /(^|[,;\s])return\s*=\s*"?minimal\b/i.test(prefer),
    metadata: level === 'none' || level === 'full' ? level : 'minimal',
  }
}

/**
 * Returns true for a generic OData client, which needs the layout `nested` (batch-wire A6). Such a client names an OData version, or
 * accepts multipart/mixed as the SAP Cloud SDK does. The legacy request of service.md 4.2 does neither. The names in `headers` must be in
 * lower case.
 */
export function isGenericClient(headers: {
  readonly accept?: string | undefined
  readonly [name: string]: string | readonly string[] | undefined
}): boolean {
  return (
    headers['odata-version'] !== undefined ||
    headers['odata-maxversion'] !== undefined ||
    /\bmultipart\/mixed\b/i.test(headers.accept ?? '')
  )
}

export interface PartHead extends Preferences {
  readonly method: string
  readonly target: TargetKind
  readonly charset: RecordCharset
  readonly contentId: string | undefined
  /** True if the Content-ID was among the HTTP headers. The part of the reply then has it there too (batch-wire A3). */
  readonly contentIdInHttp: boolean
  readonly bodyStart: number
  /** False if the part ends before the blank line after the HTTP headers, so that it has no body. */
  readonly closed: boolean
}

export interface HeadOptions {
  readonly limits: BatchLimits
  readonly serviceHosts: ReadonlySet<string> | undefined
}

/**
 * Reads the HTTP request inside an `application/http` part (RFC 9112 10.2). `mime` holds the MIME headers of the part. Throws
 * `ADP_PART_ENCODING` (batch-wire F14), `ADP_REQUEST_LINE` (F18), `ADP_CONTENT_ID` (F16), `ADP_TARGET` (F21), `ADP_HEADER` (F15) or
 * `ADP_LIMIT` (F27).
 */
export function readHead(
  bytes: Buffer,
  mime: HeaderLines,
  from: number,
  to: number,
  options: HeadOptions,
  at: ErrorLocation,
): PartHead {
  checkTransferEncoding(mime, ['binary'], at)
  let start = from
  for (
    let line = lineEnd(bytes, start, to);
    start < to && line.text === start;
    line = lineEnd(bytes, start, to)
  ) {
    start = line.next // Skips empty lines before the request line (batch-wire F17).
  }
  const first = lineEnd(bytes, start, to)
  const request = readRequestLine(bytes, start, first.text, { ...at, offset: start }, options)
  const http = readHeaders(bytes, first.next, to, options.limits, at)
  const mimeIds = valuesOf(mime, 'content-id').filter((id) => id !== '')
  const httpIds = valuesOf(http.lines, 'content-id').filter((id) => id !== '')
  // Ignores a Content-ID among the HTTP headers if the MIME headers have one, as V2's reader does.
  const [contentId, ...others] = new Set(mimeIds.length > 0 ? mimeIds : httpIds)
  if (others.length > 0) {
    throw new AdapterError(
      'ADP_CONTENT_ID',
      'A part has two different Content-IDs. Nothing was posted. Send one Content-ID for each part.',
      {
        at,
      },
    )
  }
  if (contentId?.includes('\ufffd') === true) {
    const message =
      'A Content-ID is not valid UTF-8 and cannot be repeated in the reply. Nothing was posted. Send the Content-ID in UTF-8.'
    throw new AdapterError('ADP_CONTENT_ID', message, { at })
  }
  return {
    ...request,
    ...readPreferences(valuesOf(http.lines, 'prefer').join(), valuesOf(http.lines, 'accept').join()),
    charset: readCharset(valuesOf(http.lines, 'content-type')[0]),
    contentId,
    contentIdInHttp: contentId !== undefined && httpIds.includes(contentId),
    bodyStart: http.end,
    closed: http.closed,
  }
}

/** The encodings of a multipart part that leave its bytes unchanged (RFC 2045 6.4; batch-wire F32). */
export const multipartEncodings = ['binary', '7bit', '8bit']

/** Throws `ADP_PART_ENCODING` if the part has a `Content-Transfer-Encoding` that is not among `allowed` (batch-wire F14, F32). */
export function checkTransferEncoding(
  mime: HeaderLines,
  allowed: readonly string[],
  at: ErrorLocation,
): void {
  for (const value of valuesOf(mime, 'content-transfer-encoding')) {
    if (!allowed.includes(value.toLowerCase())) {
      const names = allowed.join(' or ')
      const message = `The Content-Transfer-Encoding of a part is not supported. Nothing was posted. Send ${names}.`
      throw new AdapterError('ADP_PART_ENCODING', message, { at })
    }
  }
}

function readRequestLine(
  bytes: Buffer,
  from: number,
  to: number,
  at: ErrorLocation,
  options: HeadOptions,
): Pick<PartHead, 'method' | 'target'> {
  if (to - from > options.limits.maxPartHeaderBytes) {
    const limit = formatBytes(options.limits.maxPartHeaderBytes)
    throw new AdapterError(
      'ADP_LIMIT',
      `${partOf(at)} has a request line of more than ${limit}. Nothing was posted. Send a shorter request line.`,
      {
        at,
      },
    )
  }
  const [, method, uri] = REQUEST_LINE.exec(bytes.toString('latin1', from, to)) ?? []
  if (method === undefined || uri === undefined) {
    throw new AdapterError(
      'ADP_REQUEST_LINE',
      'A part has no request line. Nothing was posted. Send a blank line after the MIME headers, then "POST <path> HTTP/1.1".',
      { at },
    )
  }
  return { method, target: checkTarget(uri, options.serviceHosts, at) }
}

// Matches a request line (RFC 9112 3). Some senders add spaces. V2's reader takes everything between the first and the last space as the
// target, so a target may contain spaces (batch-wire F21).
const REQUEST_LINE =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32})[ \t]+([!-~\u0080-\u00ff](?:[ -~\u0080-\u00ff]*[!-~\u0080-\u00ff])?)[ \t]+HTTP\/\d\.\d[ \t]*$/

type TargetKind = 'collection' | 'entity'

const COLLECTION = 'attendancerecords'

/**
 * Checks the request target of a part (batch-wire F21): a relative path, an absolute path or an absolute URL, with or without a slash at
 * its end. The adapter never requests the target. A client that changed its base address may still write the old host, so `serviceHosts`
 * lists the accepted host names, in lower case and without port. If `serviceHosts` is `undefined`, any host is accepted.
 *
 * Throws `ADP_TARGET` for another host, a URL with credentials, a path outside the attendance records, or a `..` segment, even if it is
 * percent-encoded. The message never contains the credentials.
 */
function checkTarget(
  target: string,
  serviceHosts: ReadonlySet<string> | undefined,
  at: ErrorLocation,
): TargetKind {
  const path = stripOrigin(target, serviceHosts, at).split(/[?#]/, 1)[0] ?? ''
  const decoded = decodePath(path, at)
  if (decoded.includes('\\') || decoded.split('/').includes('..')) {
    throw fault('leaves the service by a ".." segment or a backslash', at)
  }
  const whole = decoded.endsWith('/') ? decoded.slice(0, -1) : decoded
  const last = whole.slice(whole.lastIndexOf('/') + 1).toLowerCase()
  if (last === COLLECTION || last === `${COLLECTION}()`) return 'collection'
  if (last.startsWith(`${COLLECTION}(`) && last.endsWith(')')) return 'entity'
  throw fault('is outside the attendance records of this service', at)
}

function stripOrigin(
  target: string,
  serviceHosts: ReadonlySet<string> | undefined,
  at: ErrorLocation,
): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(target)?.[1]?.toLowerCase()
  if (scheme === undefined) {
    if (target.startsWith('//')) throw fault('begins with "//", which is not a path of this service', at)
    return target
  }
  if (scheme !== 'http' && scheme !== 'https') throw fault('has a scheme that is not HTTP', at)
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url === undefined) throw fault('is not a URL', at)
  // Searches the text for `@`, because `url` does not show an empty user name or password.
  const [, authority = '', rest = ''] = /^[^:]+:\/*([^/?#\\]*)(.*)$/.exec(target) ?? []
  if (authority.includes('@'))
    throw fault(
      'has credentials in its URL, where logs and proxies would store them, and not in the headers of the batch',
      at,
    )
  if (serviceHosts !== undefined && !serviceHosts.has(url.hostname.toLowerCase()))
    throw fault('names a host that is not among serviceHosts of the partner', at)
  // Takes the path from the text, because `url.pathname` has already resolved ".." segments, which must be refused.
  return rest
}

// Decodes a path twice, because double encoding must not hide a `..` segment that a server behind the adapter would decode.
function decodePath(path: string, at: ErrorLocation): string {
  try {
    return decodeURIComponent(decodeURIComponent(path))
  } catch (cause) {
    const message =
      'The request line of a part has an invalid percent encoding. Nothing was posted. Correct the path.'
    throw new AdapterError('ADP_TARGET', message, { at, cause })
  }
}

function fault(what: string, at: ErrorLocation): AdapterError {
  return new AdapterError(
    'ADP_TARGET',
    `The request line of a part ${what}. Nothing was posted. Send "POST …/AttendanceRecords HTTP/1.1".`,
    { at },
  )
}
