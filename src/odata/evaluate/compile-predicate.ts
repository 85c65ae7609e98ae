import type { ModelIndex } from '../typed/model-index.ts'
import type { Scalar } from '../typed/scalar.ts'
import type { TypedExpr } from '../typed/typed-ast.ts'
import type { TypedOrderBy } from '../typed/typed-query.ts'
import { orderScalars } from './compare-scalars.ts'
import { compileExpression, type VisitBudget } from './compile-expression.ts'

const unlimited = (): VisitBudget => ({ left: Infinity })

/**
 * Compiles a checked condition into a test of entities in their JSON form, navigation properties included where the
 * condition follows them. A condition that is null for an entity does not hold (OData URL conventions 5.1.2).
 *
 * @param budget - visits of items of collections, over all entities. Default: without limit
 * @throws QueryError from the test, once the budget is spent
 */
export function compilePredicate(
  filter: TypedExpr,
  index: ModelIndex,
  budget = unlimited(),
): (entity: unknown) => boolean {
  const evaluate = compileExpression(filter, index, budget)
  return (entity) => evaluate([entity]) === true
}

/** Null, and values without an order, come first (OData protocol 11.2.6.2). */
function order(left: Scalar, right: Scalar): number {
  const isFirst = (value: Scalar): boolean => value === null || Number.isNaN(value)
  if (isFirst(left) || isFirst(right)) return Number(isFirst(right)) - Number(isFirst(left))
  return orderScalars(left, right)
}

/**
 * Compiles checked `$orderby` items into a comparison of entities in their JSON form, for a stable sort; `budget` is as
 * in `compilePredicate`.
 */
export function compileComparator(
  items: readonly TypedOrderBy[],
  index: ModelIndex,
  budget = unlimited(),
): (left: unknown, right: unknown) => number {
  const keys = items.map(({ expression, direction }) => ({
    evaluate: compileExpression(expression, index, budget),
    sign: direction === 'desc' ? -1 : 1,
  }))
  return (left, right) => {
    for (const { evaluate, sign } of keys) {
      const result = order(evaluate([left]), evaluate([right]))
      if (result !== 0) return result * sign
    }
    return 0
  }
}
