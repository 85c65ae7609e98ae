import { AdapterError, type ErrorLocation } from '../../errors.ts'

/** The target in the request line of a part. */
export type TargetKind = 'collection' | 'entity'

const COLLECTION = 'attendancerecords'

/**
 * Checks the request target of a part (batch-wire F21): relative, absolute path, or absolute URL, with or without a slash at its
 * end. It is only checked, never followed, and a client that changed its base address may still write the old host: `serviceHosts`
 * are the host names that count, in lower case without port; undefined: any. Errors: `ADP_TARGET` for another host, a URL with
 * credentials, which are not repeated, a path outside the attendance records, or a `..` segment, also when encoded.
 */
export function checkTarget(
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
  if (last === COLLECTION) return 'collection'
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
  // By the text: URL takes an empty name and password for none.
  const [, authority = '', rest = ''] = /^[^:]+:\/*([^/?#\\]*)(.*)$/.exec(target) ?? []
  if (authority.includes('@'))
    throw fault(
      'has credentials in its URL, where logs and proxies would keep them: send them as headers of the batch',
      at,
    )
  if (serviceHosts !== undefined && !serviceHosts.has(url.hostname.toLowerCase()))
    throw fault('names a host that is not among serviceHosts of the partner', at)
  // The text after the authority, not url.pathname: that has its ".." segments already resolved.
  return rest
}

// Decoded twice: double encoding must not hide a segment that a later hop would decode.
function decodePath(path: string, at: ErrorLocation): string {
  try {
    return decodeURIComponent(decodeURIComponent(path))
  } catch (cause) {
    throw new AdapterError('ADP_TARGET', 'The request line of a part has a bad percent encoding.', {
      at,
      cause,
    })
  }
}

function fault(what: string, at: ErrorLocation): AdapterError {
  return new AdapterError(
    'ADP_TARGET',
    `The request line of a part ${what}. Send "POST …/AttendanceRecords HTTP/1.1"; nothing was posted.`,
    { at },
  )
}
