import {
  parseJsonQuery,
  printQuery,
  QueryError,
  type QueryOptions,
  type TypedExpr,
} from '../../odata/index.ts'
import type { Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import { type CompiledQuery, compileQuery, type QueryContext } from './compile-query.ts'
import { collectionReply, plainText, presentationOf } from './presentation.ts'

/** An entity of a collection, and the token of a page that starts after this entity. */
export interface CollectionRow {
  readonly entity: Entity
  readonly token: () => string
}

export interface Collection {
  /** The text after `$metadata#` in the context URL. */
  readonly context: string
  readonly typeName: string
  /**
   * Returns the rows in natural order, from the first row or after the row of a token. The function may skip rows that `filter` cannot
   * match. Throws `QueryError` for a malformed token.
   */
  readonly rows: (after: string | undefined, filter: TypedExpr | undefined) => Iterable<CollectionRow>
  /** Returns the reply to a filter that is too wide, or `undefined` if the rows may be read. */
  readonly refuse?: (filter: TypedExpr | undefined) => Reply | undefined
  /** True if the collection may contain the rows of a whole school. The rows can then be read only in natural order. */
  readonly naturalOrderOnly?: true
}

/** Returns the `rows` function of a collection that is held in memory. The token is the number of rows before the page. */
export function listedRows(entities: readonly Entity[]): Collection['rows'] {
  return (after) => {
    const first = readOffset(after)
    const rest = first === 0 ? entities : entities.slice(first)
    return rest.map((entity, at) => ({ entity, token: () => String(first + at + 1) }))
  }
}

/**
 * Answers a GET of a collection with one page. In natural order the token of the next page identifies the last row of this page, so that
 * every page takes the same time. In any other order the token is the number of preceding rows. Throws `QueryError` for invalid query
 * options.
 */
export function readCollection(
  collection: Collection,
  queryContext: QueryContext,
  request: RoutedRequest,
): Reply {
  const { context, typeName } = collection
  const options = parseJsonQuery(request.query)
  const presentation = presentationOf(options, request)
  const query = compileQuery(options, typeName, queryContext, presentation.level)
  const { compare } = query
  if (compare !== undefined && collection.naturalOrderOnly === true)
    throw new QueryError('Changes are always in the order of writing', 0, '$orderby', 'Omit $orderby')
  const refusal = collection.refuse?.(query.filter)
  if (refusal !== undefined) return refusal
  const size = pageSize(queryContext.pageSize, request, options)
  const { skiptoken, skip = 0 } = options
  const matching = function* (after?: string): Generator<CollectionRow> {
    for (const row of collection.rows(after, query.filter)) if (query.matches(row.entity)) yield row
  }
  const reply = (page: Page<CollectionRow>, count: () => number, token: () => string | undefined): Reply =>
    collectionReply(
      presentation,
      context + query.selection,
      page.rows.map(({ entity }) => query.project(entity)),
      query.count ? count() : undefined,
      page.more ? nextLink(request, options, size.rest, token()) : undefined,
    )
  if (compare !== undefined) {
    const offset = skiptoken === undefined ? skip : readOffset(skiptoken)
    const all = [...matching()].sort((one, other) => compare(one.entity, other.entity))
    const page = takePage(all, offset, size)
    return reply(
      page,
      () => all.length,
      () => String(offset + page.rows.length),
    )
  }
  const page = takePage(matching(skiptoken), skiptoken === undefined ? skip : 0, size)
  return reply(
    page,
    () => countMatching(collection.rows(undefined, query.filter), query),
    () => page.rows.at(-1)?.token(),
  )
}

/** Answers `/$count` regardless of paging and order (OData protocol 11.2.10). Throws `QueryError` for invalid query options. */
export function countCollection(
  { typeName, rows, refuse }: Collection,
  queryContext: QueryContext,
  request: RoutedRequest,
): Reply {
  const query = compileQuery(parseJsonQuery(request.query), typeName, queryContext)
  const count = (): number => countMatching(rows(undefined, query.filter), query)
  return refuse?.(query.filter) ?? plainText(String(count()))
}

/** Counts the matching rows without storing them, because a whole school may match. */
function countMatching(rows: Iterable<CollectionRow>, { matches }: CompiledQuery): number {
  let count = 0
  for (const { entity } of rows) if (matches(entity)) count += 1
  return count
}

function readOffset(token: string | undefined): number {
  if (token === undefined) return 0
  if (!/^\d{1,9}$/.test(token)) throw new QueryError('This service did not issue the token', 0, '$skiptoken')
  return Number(token)
}

interface PageSize {
  readonly size: number
  /** The number of rows that `$top` leaves for later pages, or `undefined` if the query has no `$top`. */
  readonly rest: number | undefined
}

/** Returns the smallest of the service's limit, `Prefer: odata.maxpagesize` (OData protocol 8.2.8.5) and `$top`. */
function pageSize(serverSize: number, { header }: RoutedRequest, { top }: QueryOptions): PageSize {
  const wanted = /(?:^|[,; ])(?:odata\.)?maxpagesize=(\d{1,9})/i.exec(header('prefer') ?? '')?.[1]
  const limit = wanted === undefined ? serverSize : Math.min(serverSize, Math.max(1, Number(wanted)))
  if (top === undefined) return { size: limit, rest: undefined }
  return { size: Math.min(limit, top), rest: top - Math.min(limit, top) }
}

interface Page<Row> {
  readonly rows: readonly Row[]
  readonly more: boolean
}

/** Returns a page of rows. Reads at most one row beyond the page. */
function takePage<Row>(rows: Iterable<Row>, skip: number, { size, rest }: PageSize): Page<Row> {
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
 * Returns the link to the next page. The link has the same options with the remaining `$top`, and a token in place of `$skip`. `$count` is
 * dropped, because the first page already contains the count (OData JSON format 4.5.5).
 */
function nextLink(
  { origin, path }: RoutedRequest,
  options: QueryOptions,
  rest: number | undefined,
  skiptoken = '',
): string {
  const next: { -readonly [Name in keyof QueryOptions]: QueryOptions[Name] } = { ...options, skiptoken }
  delete next.skip
  delete next.count
  if (rest === undefined) delete next.top
  else next.top = rest
  return `${origin}${path}?${printQuery(next)}`
}
