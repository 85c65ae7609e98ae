import { promote } from './check-literal.ts'
import { booleanType, describeType } from './check-scope.ts'
import type { ModelIndex } from '../typed/model-index.ts'
import { QueryError } from '../query-error.ts'
import type { CompareNode, Comparison, HasNode, TypedExpr } from '../typed/typed-ast.ts'

function hint(left: TypedExpr, right: TypedExpr): string {
  const families = [left.type.family, right.type.family]
  if (families.includes('guid') && families.includes('string'))
    return ': a guid is written without apostrophes'
  if (families.includes('instant') && families.includes('string'))
    return ': a date is written without apostrophes'
  return ''
}

function mismatch(left: TypedExpr, right: TypedExpr): never {
  const place = right.kind === 'constant' || left.kind !== 'constant' ? right : left
  const types = `${describeType(left.type)} cannot be compared with ${describeType(right.type)}`
  throw new QueryError(types + hint(left, right), place.position)
}

/** Both operands with literals promoted, where they can be compared; a structured value only with null, by eq and ne. */
export function comparable(
  left: TypedExpr,
  right: TypedExpr,
  index: ModelIndex,
  ordered: boolean,
): readonly [TypedExpr, TypedExpr] {
  const first = promote(left, right.type, index)
  const second = promote(right, left.type, index)
  if (first.type.collection || second.type.collection) mismatch(first, second)
  const families = [first.type.family, second.type.family]
  if (families.includes('structured') && (ordered || !families.includes('null'))) mismatch(first, second)
  if (families.includes('null')) return [first, second]
  const sameEnum = families[0] !== 'enum' || first.type.name === second.type.name
  if (families[0] !== families[1] || !sameEnum) mismatch(first, second)
  return [first, second]
}

/** `left operator right` as a checked comparison. */
export function checkComparison(
  operator: Comparison,
  left: TypedExpr,
  right: TypedExpr,
  index: ModelIndex,
): CompareNode {
  const ordered = operator !== 'eq' && operator !== 'ne'
  const [first, second] = comparable(left, right, index, ordered)
  return { kind: 'compare', operator, left: first, right: second, type: booleanType, position: left.position }
}

/** `left has right`: an enumeration value and the flags asked for. */
export function checkHas(left: TypedExpr, right: TypedExpr, index: ModelIndex): HasNode {
  const [first, second] = comparable(left, right, index, false)
  for (const { type, position } of [first, second]) {
    if (type.family !== 'enum' && type.family !== 'null') {
      throw new QueryError(`Expected an enumeration value, found ${describeType(type)}`, position)
    }
  }
  return { kind: 'has', left: first, right: second, type: booleanType, position: left.position }
}
