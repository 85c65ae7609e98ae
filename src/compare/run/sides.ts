import { AdapterError } from '../../errors.ts'
import type { Authorisation } from '../../partners/partner.ts'
import type { ReadContext } from '../../reads/read-request.ts'
import { type ReadSession, readUpstream } from '../../reads/read-upstream.ts'
import { readNextLink, toV3RegistrationQuery } from '../../translate/index.ts'
import { isMembers } from '../diff/values.ts'
import { type AskedRead, failureOf, MARKS_PATH, readAsClient, type SideAnswer } from '../live/ask-sides.ts'

export interface SidePage {
  readonly rows: readonly object[]
  /** The raw query of the next page, or `undefined` if this page is the last. */
  readonly next: string | undefined
}

export interface ComparedSide {
  /**
   * Reads one page within the rate limit and the time limit for the service. Retries when the service asks for a retry. Throws the errors
   * of `readUpstream`, `ADP_UPSTREAM_PROTOCOL` if the answer is not a page, and the reason of an aborted signal.
   */
  page(query: string, signal: AbortSignal): Promise<SidePage>
}

export type OpenSession = (signal: AbortSignal) => Promise<ReadSession>

/** Creates a side that returns the pages of a service unchanged: pages of V2, or pages of V3 that the adapter passes through. */
export function createUpstreamSide(openSession: OpenSession, resource: string): ComparedSide {
  return {
    page: async (query, signal) => {
      const json = await readUpstream(await openSession(signal), resource, query)
      if (json === undefined)
        throw new AdapterError(
          'ADP_NOT_FOUND',
          `The service has no ${resource} below this base address. Nothing was read. Check the base address.`,
        )
      return readSidePage(json)
    },
  }
}

/** Access to V3 as a V2 client sees it through the adapter. */
export interface AdapterSide {
  readonly marks: ComparedSide
  /**
   * Repeats a read of a client. Never rejects. After three reads in a row without an answer, returns `unknown` and sends no more reads to
   * V3.
   */
  ask(read: Pick<AskedRead, 'kind' | 'path' | 'query'>, signal: AbortSignal): Promise<SideAnswer>
}

const MAX_FAILURES = 3

/** Creates the V3 side from the code that serves clients. `client` is called before each read, since the token may have been renewed. */
export function createAdapterSide(
  context: ReadContext,
  client: () => Promise<Authorisation>,
  openSession: OpenSession,
  registrations: ComparedSide,
): AdapterSide {
  const read = async (
    { kind, path, query }: Pick<AskedRead, 'kind' | 'path' | 'query'>,
    signal: AbortSignal,
  ): Promise<string> => {
    const [session, authorisation] = await Promise.all([openSession(signal), client()])
    const accept = 'application/json;odata.metadata=none'
    return readAsClient(context, authorisation, { kind, path, query, accept, prefer: '' }, session)
  }
  let failures = 0
  return {
    marks: {
      page: async (query, signal) =>
        readSidePage(JSON.parse(await read({ kind: 'filter', path: MARKS_PATH, query }, signal))),
    },
    ask: async ({ kind, path, query }, signal) => {
      if (failures >= MAX_FAILURES) return { kind: 'unknown' }
      const text = async (): Promise<string> => {
        if (kind !== 'registrations') return read({ kind, path, query }, signal)
        const { rows, next } = await registrations.page(toV3RegistrationQuery(query), signal)
        return JSON.stringify({ value: rows, '@odata.nextLink': next })
      }
      const answer = await text().then(toAnswer, failureOf)
      failures = answer.kind === 'answered' ? 0 : failures + 1
      return answer
    },
  }
}

const toAnswer = (text: string): SideAnswer => ({ kind: 'answered', status: 200, text })

/**
 * Parses a page of JSON in the form of OData 4.0, or in the older form with the member `d` (quirk `dataEnvelope`). Of a next link only the
 * query is used (service-facts 14). Throws `ADP_UPSTREAM_PROTOCOL` with a message that contains no value.
 */
export function readSidePage(json: unknown): SidePage {
  const page = isMembers(json) && isMembers(json['d']) ? json['d'] : json
  if (!isMembers(page)) throw brokenPage('is not a collection')
  const rows = page['value'] ?? page['results']
  if (!Array.isArray(rows)) throw brokenPage('is not a collection')
  if (!rows.every(isMembers)) throw brokenPage('has a row that is not an object')
  const next = readNextLink(page)
  if (next.kind === 'broken') throw brokenPage(next.fault)
  return { rows, next: next.kind === 'next' ? next.query : undefined }
}

function brokenPage(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The answer ${fault}.`)
}

export type RowsRead =
  | { readonly kind: 'rows'; readonly rows: readonly object[] }
  | { readonly kind: 'tooMany' }
  | { readonly kind: 'failed'; readonly cause: AdapterError }

/** The maximum number of empty pages in a row. Some pages are empty if a service filters rows after it has divided them into pages. */
const MAX_EMPTY_PAGES = 100

/**
 * Reads all pages of a query, up to `maxRows` rows. Errors of the service are results. Rejects if `signal` aborts, or for an unexpected
 * error.
 */
export async function readRows(
  side: ComparedSide,
  query: string,
  maxRows: number,
  signal: AbortSignal,
): Promise<RowsRead> {
  const rows: object[] = []
  const followed = new Set<string>()
  let empty = 0
  try {
    for (let next: string | undefined = query; next !== undefined;) {
      if (followed.has(next)) throw endlessPages('leads back to a page before it')
      followed.add(next)
      const page = await side.page(next, signal)
      signal.throwIfAborted()
      for (const row of page.rows) rows.push(row)
      empty = page.rows.length === 0 ? empty + 1 : 0
      if (empty > MAX_EMPTY_PAGES) throw endlessPages('leads to pages without rows')
      if (rows.length > maxRows) return { kind: 'tooMany' }
      next = page.next
    }
    return { kind: 'rows', rows }
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof AdapterError) return { kind: 'failed', cause }
    throw cause
  }
}

function endlessPages(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The answer does not end: a next link ${fault}.`)
}
