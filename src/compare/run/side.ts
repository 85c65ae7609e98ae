import { AdapterError } from '../../errors.ts'

/** A page as one side answered it. */
export interface SidePage {
  readonly rows: readonly object[]
  /** The raw query of the next page; undefined: there is none. */
  readonly next: string | undefined
}

/** One of the two services that a run sets against each other. */
export interface ComparedSide {
  readonly name: 'V2' | 'V3'
  /**
   * Reads one page of the set: within the rate limit of the side, again where a service says so, and within a bound of time.
   * Errors: those of `readUpstream`; `ADP_UPSTREAM_PROTOCOL` for an answer that is not a page. Rejects with the reason of the signal.
   */
  page(query: string, signal: AbortSignal): Promise<SidePage>
}

/**
 * Reads a page: rows and link of OData V4, or of V2 JSON, which is in a `d` (quirk `dataEnvelope`). Of a link only the query counts:
 * it is followed on the host and the path that were called, whatever it names (service-facts 14).
 * Error: `ADP_UPSTREAM_PROTOCOL`, never with a value.
 */
export function readSidePage(json: unknown): SidePage {
  const page = isObject(json) && isObject(json['d']) ? json['d'] : json
  if (!isObject(page)) throw brokenPage('is not a collection')
  const rows = page['value'] ?? page['results']
  if (!Array.isArray(rows)) throw brokenPage('is not a collection')
  if (!rows.every(isObject)) throw brokenPage('has a row that is not an object')
  const link = page['@odata.nextLink'] ?? page['__next']
  if (link === undefined || link === null) return { rows, next: undefined }
  const query = typeof link === 'string' ? queryOf(link) : ''
  if (query === '') throw brokenPage('has a next link without a query')
  return { rows, next: query }
}

/** The query of a link, as it goes into a request line. */
function queryOf(link: string): string {
  const at = link.indexOf('?')
  const query = at < 0 ? '' : (link.slice(at + 1).split('#', 1)[0] ?? '')
  return query.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function brokenPage(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The answer ${fault}.`)
}
