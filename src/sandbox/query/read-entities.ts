import { QueryError } from '../../odata/index.ts'
import type { QueryOptions } from '../../odata/index.ts'
import type { Reply } from '../edge/reply.ts'
import { contextRoot } from '../edge/request.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { collectionReply } from './collection.ts'
import { compileQuery } from './compile-query.ts'
import { findEntities } from './compiled-query.ts'
import type { QueryContext } from './compile-query.ts'
import { nextLink, pageSize, takePage } from './page.ts'
import type { Entity } from './compiled-query.ts'
import { readQuery } from './read-query.ts'

/** A collection that is whole in memory, and how it is called. */
export interface EntityCollection {
  /** Qualified name of the entity type. */
  readonly typeName: string
  /** What follows `$metadata#`. */
  readonly context: string
  readonly entities: readonly Entity[]
}

/**
 * Answers a GET of such a collection, one page of it. The token of a next page is the number of rows before it.
 * Errors: `QueryError`.
 */
export function readEntities(
  collection: EntityCollection,
  queryContext: QueryContext,
  serverPageSize: number,
  route: Route,
  request: ServiceRequest,
): Reply {
  const options = readQuery(request.query)
  const offset = readOffset(options)
  const query = compileQuery(options, collection.typeName, queryContext)
  const items = findEntities(query, collection.entities)
  const size = pageSize(serverPageSize, request.header('prefer'), options.top)
  const page = takePage(items, offset, size)
  const url = `${request.origin}${request.path}`
  return collectionReply({
    root: contextRoot(route, request),
    context: collection.context,
    rows: page.rows.map((entity) => query.project(entity)),
    count: query.count ? items.length : undefined,
    next: page.more ? nextLink(url, options, size.rest, String(offset + page.rows.length)) : undefined,
  })
}

/** Where the page begins: the token of an earlier page, or `$skip`. */
export function readOffset({ skiptoken, skip }: QueryOptions): number {
  if (skiptoken === undefined) return skip ?? 0
  if (!/^\d{1,9}$/.test(skiptoken)) throw new QueryError('The token is not of this service', 0, '$skiptoken')
  return Number(skiptoken)
}
