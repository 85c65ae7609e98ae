import { type KeyPart, parseResourcePath, type PathSegment, QueryError } from '../../odata/index.ts'
import { methodNotAllowed, notFound, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import type { QueryContext } from './compile-query.ts'
import { type Collection, countCollection, readCollection } from './read-collection.ts'
import { findByKey, keyValues, readEntity } from './read-entity.ts'

/** An entity set of a service root, with its operations in addition to GET. */
export interface ServedSet extends Collection {
  /** Finds the entity by a key of one part. If this function is absent, all rows are searched. */
  readonly byId?: (id: string) => Entity | undefined
  readonly post?: (request: RoutedRequest) => Reply
  readonly patch?: (entity: Entity, request: RoutedRequest) => Reply
}

interface Resource {
  readonly set: string
  readonly key: readonly KeyPart[] | undefined
  readonly rest: readonly PathSegment[]
  /** True if the path ends with `/$value`. */
  readonly isRaw: boolean
}

/**
 * Parses a resource path (OData URL conventions 4) such as `Set`, `Set(key)`, `Set(key)/Link`, `Set/NS.Function(…)`, `Set/$count` or
 * `Set(key)/Property/$value`. Returns `undefined` for any other form.
 */
export function readResource(segments: readonly string[]): Resource | undefined {
  // The parser skips spaces and tabs, because a query may contain them. In a path, no segment may begin or end with white space, or contain
  // a tab.
  if (segments.some((segment) => segment !== segment.trim() || segment.includes('\t'))) return undefined
  try {
    const isRaw = segments.at(-1)?.toLowerCase() === '$value'
    const [set = '', ...below] = isRaw ? segments.slice(0, -1) : segments
    // .NET clients write `Set()` for a set.
    const path = [set.replace(/\(\)$/, ''), ...below]
    const [first, second, ...rest] = parseResourcePath(path.join('/'))
    if (first?.kind !== 'property') return undefined
    if (second?.kind === 'key') return { set: first.name, key: second.parts, rest, isRaw }
    return { set: first.name, key: undefined, rest: second === undefined ? [] : [second, ...rest], isRaw }
  } catch (error) {
    if (error instanceof QueryError) return undefined
    throw error
  }
}

/** Answers a request for a set or for a resource below the set. Throws `QueryError` for invalid query options. */
export function answerSet(
  set: ServedSet,
  resource: Resource,
  queryContext: QueryContext,
  request: RoutedRequest,
): Reply {
  const { key, rest, isRaw } = resource
  const { method } = request
  const [next, ...beyond] = rest
  if (key !== undefined) {
    const patch = next === undefined && !isRaw ? set.patch : undefined
    if (method !== 'GET' && (method !== 'PATCH' || patch === undefined))
      return methodNotAllowed('GET', ...(patch === undefined ? [] : ['PATCH']))
    const entity = findEntity(set, key, queryContext)
    if (entity === undefined) return notFound
    if (method === 'PATCH' && patch !== undefined) return patch(entity, request)
    return readEntity({ ...set, rest, isRaw, entity }, queryContext, request)
  }
  if (isRaw || beyond.length > 0 || (next !== undefined && next.kind !== '$count')) return notFound
  const post = next === undefined ? set.post : undefined
  if (method === 'POST' && post !== undefined) return post(request)
  if (method !== 'GET') return methodNotAllowed('GET', ...(post === undefined ? [] : ['POST']))
  return (next === undefined ? readCollection : countCollection)(set, queryContext, request)
}

function findEntity(
  { typeName, rows, byId }: ServedSet,
  key: readonly KeyPart[],
  { index }: QueryContext,
): Entity | undefined {
  const names = index.structured(typeName).key
  if (byId === undefined)
    return findByKey(
      Array.from(rows(undefined, undefined), ({ entity }) => entity),
      key,
      names,
    )
  const [id] = keyValues(key, names) ?? []
  return id === undefined ? undefined : byId(id)
}
