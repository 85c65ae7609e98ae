import { QueryError } from '../../odata/index.ts'
import type { QueryOptions } from '../../odata/index.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { collectionReply } from './collection.ts'
import { compileQuery } from './compile-query.ts'
import { findEntities } from './compiled-query.ts'
import type { QueryContext } from './compile-query.ts'
import { nextLink, pageSize, takePage } from './page.ts'
import type { Entity } from './compiled-query.ts'
import type { Describe } from './describe-entity.ts'
import { presentationOf } from './presentation.ts'
import { plainText } from './raw-value.ts'
import { readQuery } from './read-query.ts'

/** A collection that is whole in memory, and how it is called. */
export interface EntityCollection {
  /** Qualified name of the entity type. */
  readonly typeName: string
  /** The text after `$metadata#`. */
  readonly context: string
  readonly entities: readonly Entity[]
  /** Another way to write the full level of annotations. */
  readonly describe?: Describe
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
  const presentation = presentationOf(options, route, request, queryContext.index, collection.describe)
  const query = compileQuery(options, collection.typeName, queryContext, presentation.describe)
  const items = findEntities(query, collection.entities)
  const size = pageSize(serverPageSize, request.header('prefer'), options.top)
  const page = takePage(items, offset, size)
  const url = `${request.origin}${request.path}`
  return collectionReply({
    presentation,
    context: collection.context,
    rows: page.rows.map((entity) => query.project(entity, `${presentation.root}/${collection.context}`)),
    count: query.count ? items.length : undefined,
    next: page.more ? nextLink(url, options, size.rest, String(offset + page.rows.length)) : undefined,
  })
}

/** Answers `/$count` of such a collection: how many of its entities match. Errors: `QueryError`. */
export function countEntities(
  { typeName, entities }: EntityCollection,
  queryContext: QueryContext,
  request: ServiceRequest,
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
