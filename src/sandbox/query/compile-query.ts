import { checkQuery, compileComparator, compilePredicate } from '../../odata/index.ts'
import type { ModelIndex, QueryOptions, StructuredType, TypedExpr, TypedQuery } from '../../odata/index.ts'
import { compileProjection } from './projection.ts'
import type { Entity, Projection } from './projection.ts'

/** What queries are compiled against. */
export interface QueryContext {
  readonly index: ModelIndex
  /** Milliseconds for `now()`. */
  readonly now: number
}

/** A query ready to run, for the rows of a request or of one expanded collection. */
export interface CompiledQuery {
  /** The checked filter; undefined: every entity. */
  readonly filter: TypedExpr | undefined
  readonly matches: (entity: Entity) => boolean
  /** Undefined: the order of the service. */
  readonly compare: ((one: Entity, other: Entity) => number) | undefined
  readonly project: Projection
  readonly skip: number
  readonly top: number | undefined
  readonly count: boolean
}

/** Checks and compiles query options against a type. Errors: `QueryError` with the option and position. */
export function compileQuery(
  options: QueryOptions,
  typeName: string,
  { index, now }: QueryContext,
): CompiledQuery {
  return compileTyped(checkQuery(options, typeName, index, { now }), index.structured(typeName), index)
}

function compileTyped(query: TypedQuery, type: StructuredType, index: ModelIndex): CompiledQuery {
  const { filter, orderby } = query
  return {
    filter,
    matches: filter === undefined ? () => true : compilePredicate(filter, index),
    compare: orderby.length === 0 ? undefined : compileComparator(orderby, index),
    project: compileProjection(query, type, (nested, target) => compileTyped(nested, target, index)),
    skip: query.skip ?? 0,
    top: query.top,
    count: query.count,
  }
}

/** The entities that match, in the order asked for; `$skip` and `$top` are left to the caller. */
export function findEntities(query: CompiledQuery, entities: readonly Entity[]): Entity[] {
  const found = entities.filter((entity) => query.matches(entity))
  return query.compare === undefined ? found : found.sort(query.compare)
}
