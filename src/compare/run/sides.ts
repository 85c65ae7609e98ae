import { AdapterError } from '../../errors.ts'
import type { Authorisation } from '../../partners/partner.ts'
import type { ReadContext } from '../../reads/read-request.ts'
import { type ReadSession, readUpstream } from '../../reads/read-upstream.ts'
import { readNextLink, toV3RegistrationQuery } from '../../translate/index.ts'
import { isMembers } from '../diff/values.ts'
import { type AskedRead, failureOf, MARKS_PATH, readAsClient, type SideAnswer } from '../live/ask-sides.ts'

/** A page as one side answered it. */
export interface SidePage {
  readonly rows: readonly object[]
  /** The raw query of the next page; undefined: there is none. */
  readonly next: string | undefined
}

/** One of the two services that a run sets against each other. */
export interface ComparedSide {
  /**
   * Reads one page of the set: within the rate limit of the side, again where a service says so, and within a bound of time.
   * Errors: those of `readUpstream`; `ADP_UPSTREAM_PROTOCOL` for an answer that is not a page. Rejects with the reason of the signal.
   */
  page(query: string, signal: AbortSignal): Promise<SidePage>
}

/** Opens the session of one call: its credentials, its place under the rate limit, its bound of time. */
export type OpenSession = (signal: AbortSignal) => Promise<ReadSession>

/** A side that is read over HTTP as it answers: V2, and the documents that the adapter passes on as they are. */
export function createUpstreamSide(openSession: OpenSession, resource: string): ComparedSide {
  return {
    page: async (query, signal) => {
      const json = await readUpstream(await openSession(signal), resource, query)
      if (json === undefined)
        throw new AdapterError('ADP_NOT_FOUND', `There is no ${resource} below this base address.`)
      return readSidePage(json)
    },
  }
}

/** V3 as a client of V2 gets it through the adapter. */
export interface AdapterSide {
  /** Pages of marks. */
  readonly marks: ComparedSide
  /** Asks for a single read of a client; never rejects. After three calls in a row without an answer V3 is not asked any longer. */
  ask(read: Pick<AskedRead, 'kind' | 'path' | 'query'>, signal: AbortSignal): Promise<SideAnswer>
}

const MAX_FAILURES = 3

/**
 * V3 by the code that serves clients, from the plan of the query to the text of the answer; `registrations` are V3's own. `client` is asked
 * for before each call: its token may be new.
 */
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
      const answer = await text().then(answered, failureOf)
      failures = answer.kind === 'answered' ? 0 : failures + 1
      return answer
    },
  }
}

const answered = (text: string): SideAnswer => ({ kind: 'answered', status: 200, text })

/**
 * Reads a page: rows and link of OData V4, or of V2 JSON, which is in a `d` (quirk `dataEnvelope`). Of a link only the query counts:
 * it is followed on the host and the path that were called, whatever it names (service-facts 14).
 * Error: `ADP_UPSTREAM_PROTOCOL`, never with a value.
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

/** All rows that a side has for a query, `tooMany`, or why it could not be read to its end. */
export type RowsRead =
  | { readonly kind: 'rows'; readonly rows: readonly object[] }
  | { readonly kind: 'tooMany' }
  | { readonly kind: 'failed'; readonly cause: AdapterError }

/** Pages without a row, one after another, at most: a service may filter after it has cut its pages. */
const MAX_EMPTY_PAGES = 100

/**
 * Reads a query of one side page by page, to its end, or until it has more than `maxRows`. What the side does wrong is an
 * outcome; rejects only when `signal` aborts, and for a fault of the program.
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
      if (followed.has(next)) throw endless('leads back to a page before it')
      followed.add(next)
      const page = await side.page(next, signal)
      signal.throwIfAborted()
      for (const row of page.rows) rows.push(row)
      empty = page.rows.length === 0 ? empty + 1 : 0
      if (empty > MAX_EMPTY_PAGES) throw endless('leads to pages without rows')
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

function endless(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The answer does not end: a next link ${fault}.`)
}
