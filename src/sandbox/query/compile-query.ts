import { checkQuery, compileComparator, compilePredicate, QueryError } from '../../odata/index.ts'
import type { ModelIndex, QueryOptions, StructuredType, TypedQuery, VisitBudget } from '../../odata/index.ts'
import type { CompiledQuery } from './compiled-query.ts'
import type { Describe } from './describe-entity.ts'
import { compileProjection } from './projection.ts'

/** The environment that queries are compiled against. */
export interface QueryContext {
  readonly index: ModelIndex
  /** Milliseconds for `now()`. */
  readonly now: number
}

/** Items of collections that the conditions of one query may visit together: dozens of times those of a school. */
const maxVisits = 200_000

/** Checks and compiles query options against a type; `describe` annotates the result. Errors: `QueryError` with the option and position. */
export function compileQuery(
  options: QueryOptions,
  typeName: string,
  { index, now }: QueryContext,
  describe?: Describe,
): CompiledQuery {
  const checked = checkQuery(options, typeName, index, { now })
  return compileTyped(checked, index.structured(typeName), index, { left: maxVisits }, describe)
}

function compileTyped(
  query: TypedQuery,
  type: StructuredType,
  index: ModelIndex,
  budget: VisitBudget,
  describe: Describe | undefined,
  outer?: '$expand',
): CompiledQuery {
  const { filter, orderby } = query
  return {
    filter,
    matches:
      filter === undefined
        ? () => true
        : inOption(outer ?? '$filter', compilePredicate(filter, index, budget)),
    compare:
      orderby.length === 0
        ? undefined
        : inOption(outer ?? '$orderby', compileComparator(orderby, index, budget)),
    project: compileProjection(
      query,
      type,
      (nested, target) => compileTyped(nested, target, index, budget, describe, '$expand'),
      describe,
    ),
    skip: query.skip ?? 0,
    top: query.top,
    count: query.count,
  }
}

/** A fault that shows itself only while the query runs names its option as the others do. */
function inOption<Given extends unknown[], Result>(
  option: string,
  run: (...given: Given) => Result,
): (...given: Given) => Result {
  return (...given) => {
    try {
      return run(...given)
    } catch (error) {
      throw error instanceof QueryError ? error.inOption(option) : error
    }
  }
}
