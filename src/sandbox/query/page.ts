import { printQuery } from '../../odata/index.ts'
import type { QueryOptions } from '../../odata/index.ts'

/** Rows of one answer, and where the next begins. */
export interface Page<Row> {
  readonly rows: readonly Row[]
  /** True where rows are left for another page. */
  readonly more: boolean
}

/** Sizes of one reply: the service's page, the client's preference, the rest of `$top`. */
export interface PageSize {
  /** Rows of this answer at most. */
  readonly size: number
  /** Rows left for later answers, where the client gave `$top`. */
  readonly rest: number | undefined
}

/** The page size: the smaller of the service's own and `Prefer: odata.maxpagesize` (OData protocol 8.2.8.5). */
export function pageSize(serverSize: number, prefer: string | undefined, top: number | undefined): PageSize {
  const wanted = /(?:^|[,; ])(?:odata\.)?maxpagesize=(\d{1,9})/i.exec(prefer ?? '')?.[1]
  const limit = wanted === undefined ? serverSize : Math.min(serverSize, Math.max(1, Number(wanted)))
  if (top === undefined) return { size: limit, rest: undefined }
  return { size: Math.min(limit, top), rest: top - Math.min(limit, top) }
}

/** Takes a page from rows in order, after leaving out `skip` of them. Looks one row further, no more. */
export function takePage<Row>(rows: Iterable<Row>, skip: number, { size, rest }: PageSize): Page<Row> {
  const taken: Row[] = []
  let left = skip
  if (size === 0) return { rows: taken, more: false }
  for (const row of rows) {
    if (left > 0) left -= 1
    else if (taken.length < size) taken.push(row)
    else return { rows: taken, more: rest === undefined || rest > 0 }
  }
  return { rows: taken, more: false }
}

/**
 * The link to the next page: the same options, with the rest of `$top` and a token of the service in place of `$skip`;
 * the count stood on the first page (OData JSON format 4.5.5).
 */
export function nextLink(
  url: string,
  options: QueryOptions,
  rest: number | undefined,
  token: string,
): string {
  const next: { -readonly [Name in keyof QueryOptions]: QueryOptions[Name] } = {
    ...options,
    skiptoken: token,
  }
  delete next.skip
  delete next.count
  if (rest === undefined) delete next.top
  else next.top = rest
  return `${url}?${printQuery(next)}`
}
