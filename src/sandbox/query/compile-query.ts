import { checkExpression, checkFilter, QueryError } from '../../odata/index.ts'
import type { ModelIndex, QueryOptions, TypedExpr } from '../../odata/index.ts'
import { compileComparator, compilePredicate } from '../../odata/evaluate/compile-predicate.ts'
import { compileProjection } from './projection.ts'
import type { Entity, Projection } from './projection.ts'

/** What queries are compiled against. */
export interface QueryContext {
  readonly index: ModelIndex
  /** Milliseconds for `now()`. */
  readonly now: number
  /** Links that are not of the type and yet may be expanded, to nothing. */
  readonly extraLinks?: ReadonlySet<string>
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

/** Compiles query options against a type. Errors: `QueryError` with the option and position. */
export function compileQuery(options: QueryOptions, typeName: string, context: QueryContext): CompiledQuery {
  const { index, now } = context
  const { filter: condition, orderby, aliases } = options
  const settings = { now, ...(aliases === undefined ? {} : { aliases }) }
  const filter =
    condition === undefined
      ? undefined
      : inOption('$filter', () => checkFilter(condition, typeName, index, settings))
  const order = inOption('$orderby', () =>
    (orderby ?? []).map(({ expression, direction }) => ({
      expression: checkExpression(expression, typeName, index, settings),
      direction,
    })),
  )
  return {
    filter,
    matches: filter === undefined ? () => true : compilePredicate(filter, index),
    compare: order.length === 0 ? undefined : compileComparator(order, index),
    project: compileProjection(options, index.structured(typeName), context),
    skip: options.skip ?? 0,
    top: options.top,
    count: options.count === true,
  }
}

/** The entities that match, in the order asked for; `$skip` and `$top` are left to the caller. */
export function findEntities(query: CompiledQuery, entities: readonly Entity[]): Entity[] {
  const found = entities.filter((entity) => query.matches(entity))
  return query.compare === undefined ? found : found.sort(query.compare)
}

/** Runs `check`, so that a fault names the option it is in. */
function inOption<Result>(option: string, check: () => Result): Result {
  try {
    return check()
  } catch (error) {
    throw error instanceof QueryError && error.option === undefined ? error.inOption(option) : error
  }
}
