import { AdapterError } from '../errors.ts'
import type { ReadPlan, ReadRow } from '../translate/index.ts'
import type { FlatReply } from '../v2/index.ts'
import { readGivenRows, writeGivenRows } from './given-rows.ts'

/** The start of a page in V3's reply: V3's own page and its rows before the start, so that any instance can continue there. */
export interface ReadPosition {
  /** Index of the plan's query. */
  readonly window: number
  /** The query of V3's next link, as V3 gave it; undefined: the first page of the window. */
  readonly link: string | undefined
  /** Rows of that page that were given already, as `writeGivenRows` has them; empty: none. */
  readonly given: string
}

/** One page of recorded marks. */
interface CollectedPage {
  readonly rows: readonly FlatReply[]
  /** Where the next page begins; undefined: nothing is left. */
  readonly next: ReadPosition | undefined
  /** Recorded marks that were seen; all of them when the plan counts. */
  readonly count: number
}

/** The parts that `collectPage` works with. */
export interface PageSource {
  /** The JSON of V3's answer to a raw query. */
  readonly fetch: (query: string) => Promise<unknown>
  readonly readRow: (row: unknown) => ReadRow
  readonly plan: ReadPlan
}

/** The page that is wanted. */
export interface PageWish {
  readonly from: ReadPosition
  /** Recorded marks to pass over. */
  readonly skip: number
  /** Recorded marks of the page at most. */
  readonly size: number
  /** True where `$top` ends with this page: no row beyond it is read. */
  readonly last: boolean
  /** Whether all recorded marks are counted, to the end. */
  readonly count: boolean
}

/**
 * Reads V3 page by page until the page is full, one of V3's pages in memory at a time. It reads one row more, so that a
 * next link always leads to something; where V3 leaves unmarked rows out itself, its own link is that promise.
 * Error: `ADP_UPSTREAM_PROTOCOL` for a reply that is not a collection of records.
 */
export async function collectPage(
  { fetch, readRow, plan }: PageSource,
  wish: PageWish,
): Promise<CollectedPage> {
  const { size, last } = wish
  const rows: FlatReply[] = []
  let { window, link, given } = wish.from
  let next: ReadPosition | undefined
  let count = 0
  for (;;) {
    const page = readCollection(await fetch(link ?? plan.queries[window] ?? ''))
    const isGiven = readGivenRows(given)
    const before: FlatReply[] = []
    const left: FlatReply[] = []
    for (const each of page.rows) {
      const row = readRow(each)
      if (row === 'unreadable') throw brokenAnswer('holds a row that is not an attendance record')
      if (row === 'unmarked') continue
      const isOver = isGiven(row)
      if (!isOver) count += 1
      if (isOver || count <= wish.skip) before.push(row)
      else if (rows.length < size) {
        rows.push(row)
        before.push(row)
      } else left.push(row)
    }
    if (left.length > 0 && !last) next ??= { window, link, given: writeGivenRows(before, left) }
    if (next !== undefined && !wish.count) return { rows, next, count }
    const full = rows.length === size
    if (full && last && !wish.count) return { rows, next, count }
    if (page.link !== undefined && page.link === link) throw brokenAnswer('has a next link to itself')
    given = ''
    link = page.link
    if (link === undefined) window += 1
    if (window >= plan.queries.length) return { rows, next, count }
    if (full && size > 0 && link !== undefined && plan.narrowed && !wish.count)
      return { rows, next: { window, link, given }, count }
  }
}

/** A page of a V3 collection. */
interface Collection {
  readonly rows: readonly unknown[]
  /** The query of the next page. */
  readonly link: string | undefined
}

/**
 * Reads a V3 page. Of its link only the query counts: the host may be another than the one that was called (service-facts
 * 14). Error: `ADP_UPSTREAM_PROTOCOL`.
 */
export function readCollection(json: unknown): Collection {
  const page = typeof json === 'object' && json !== null ? json : {}
  const rows = 'value' in page ? page.value : undefined
  if (!Array.isArray(rows)) throw brokenAnswer('is not a collection')
  const link = '@odata.nextLink' in page ? page['@odata.nextLink'] : undefined
  if (link === undefined || link === null) return { rows, link: undefined }
  const at = typeof link === 'string' ? link.indexOf('?') : -1
  if (typeof link !== 'string' || at < 0) throw brokenAnswer('has a next link without a query')
  return { rows, link: link.slice(at + 1).split('#', 1)[0] }
}

function brokenAnswer(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The service's answer ${fault}.`)
}
