import { printQuery, QueryError, type QueryOptions } from '../../odata/index.ts'
import type { Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import { compileQuery, findEntities, type QueryContext, readQuery } from './compile-query.ts'
import { collectionReply, type Describe, plainText, presentationOf } from './presentation.ts'

/** A collection that is whole in memory, and how it is called. */
interface EntityCollection {
  /** Qualified name of the entity type. */
  readonly typeName: string
  /** The text after `$metadata#`. */
  readonly context: string
  readonly entities: readonly Entity[]
  /** Another way to write the full level of annotations. */
  readonly describe?: Describe | undefined
}

/**
 * Answers a GET of such a collection, one page of it. The token of a next page is the number of rows before it.
 * Errors: `QueryError`.
 */
export function readEntities(
  { typeName, context, entities, describe }: EntityCollection,
  queryContext: QueryContext,
  request: RoutedRequest,
): Reply {
  const options = readQuery(request.query)
  const offset = readOffset(options)
  const presentation = presentationOf(options, request, queryContext.index, describe)
  const query = compileQuery(options, typeName, queryContext, presentation.describe)
  const items = findEntities(query, entities)
  const size = pageSize(queryContext.pageSize, request, options)
  const page = takePage(items, offset, size)
  const rows = page.rows.map((entity) => query.project(entity, `${presentation.root}/${context}`))
  const next = page.more ? nextLink(request, options, size.rest, String(offset + rows.length)) : undefined
  return collectionReply(presentation, context, rows, query.count ? items.length : undefined, next)
}

/** Answers `/$count` of such a collection: how many of its entities match. Errors: `QueryError`. */
export function countEntities(
  { typeName, entities }: EntityCollection,
  queryContext: QueryContext,
  request: RoutedRequest,
): Reply {
  const query = compileQuery(readQuery(request.query), typeName, queryContext)
  return plainText(String(findEntities(query, entities).length))
}

/** Where the page begins: the token of an earlier page, or `$skip`. */
export function readOffset({ skiptoken, skip }: QueryOptions): number {
  if (skiptoken === undefined) return skip ?? 0
  if (!/^\d{1,9}$/.test(skiptoken)) throw new QueryError('The token is not of this service', 0, '$skiptoken')
  return Number(skiptoken)
}

/** Rows of one answer at most, and those that `$top` leaves for later answers. */
interface PageSize {
  readonly size: number
  /** Undefined: the client gave no `$top`. */
  readonly rest: number | undefined
}

/** The page size: the smaller of the service's own and `Prefer: odata.maxpagesize` (OData protocol 8.2.8.5). */
export function pageSize(
  serverSize: number,
  { header }: Pick<RoutedRequest, 'header'>,
  { top }: QueryOptions,
): PageSize {
  const wanted = /(?:^|[,; ])(?:odata\.)?maxpagesize=(\d{1,9})/i.exec(header('prefer') ?? '')?.[1]
  const limit = wanted === undefined ? serverSize : Math.min(serverSize, Math.max(1, Number(wanted)))
  if (top === undefined) return { size: limit, rest: undefined }
  return { size: Math.min(limit, top), rest: top - Math.min(limit, top) }
}

/** Takes a page from rows in order, after leaving out `skip` of them; `more`: rows are left. Looks one row further, no more. */
export function takePage<Row>(
  rows: Iterable<Row>,
  skip: number,
  { size, rest }: PageSize,
): { readonly rows: readonly Row[]; readonly more: boolean } {
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
  { origin, path }: RoutedRequest,
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
  return `${origin}${path}?${printQuery(next)}`
}
