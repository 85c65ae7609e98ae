import { checkQuery, compileComparator, compilePredicate } from '../../odata/index.ts'
import type { ModelIndex, QueryOptions, StructuredType, TypedQuery } from '../../odata/index.ts'
import type { CompiledQuery } from './compiled-query.ts'
import { compileProjection } from './projection.ts'

/** What queries are compiled against. */
export interface QueryContext {
  readonly index: ModelIndex
  /** Milliseconds for `now()`. */
  readonly now: number
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
