import type { ModelIndex } from '../typed/model-index.ts'
import type { Scalar } from '../typed/scalar.ts'
import type { TypedExpr } from '../typed/typed-ast.ts'
import type { TypedOrderBy } from '../typed/typed-query.ts'
import { orderScalars } from './compare-scalars.ts'
import { compileExpression } from './compile-expression.ts'

/**
 * Compiles a checked condition into a test of entities in their JSON form, navigation properties included where the
 * condition follows them. A condition that is null for an entity does not hold (OData URL conventions 5.1.2).
 */
export function compilePredicate(filter: TypedExpr, index: ModelIndex): (entity: unknown) => boolean {
  const evaluate = compileExpression(filter, index)
  return (entity) => evaluate([entity]) === true
}

/** Null, and what has no order, comes first (OData protocol 11.2.6.2). */
function order(left: Scalar, right: Scalar): number {
  const isFirst = (value: Scalar): boolean => value === null || Number.isNaN(value)
  if (isFirst(left) || isFirst(right)) return Number(isFirst(right)) - Number(isFirst(left))
  return orderScalars(left, right)
}

/** Compiles checked `$orderby` items into a comparison of entities in their JSON form, for a stable sort. */
export function compileComparator(
  items: readonly TypedOrderBy[],
  index: ModelIndex,
): (left: unknown, right: unknown) => number {
  const keys = items.map(({ expression, direction }) => ({
    evaluate: compileExpression(expression, index),
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
