import { describeType } from './check-scope.ts'
import { QueryError } from '../query-error.ts'
import type { Arithmetic, ArithmeticNode, TypedExpr, UnaryNode } from '../typed/typed-ast.ts'
import { isInteger, nullType, primitive, type Family, type ValueType } from '../typed/value-type.ts'

type Operator = Arithmetic | 'divby'

const instant = primitive('Edm.DateTimeOffset')
const date = primitive('Edm.Date')
const duration = primitive('Edm.Duration')

/** Arithmetic with times (OData URL conventions 5.1.1.2); numbers are handled apart. */
const timeResults: Readonly<Record<string, ValueType>> = {
  'instant add duration': instant,
  'instant sub duration': instant,
  'instant sub instant': duration,
  'date add duration': date,
  'date sub duration': date,
  'date sub date': duration,
  'duration add duration': duration,
  'duration sub duration': duration,
  'duration mul number': duration,
  'number mul duration': duration,
  'duration div number': duration,
  'duration divby number': duration,
}

function numberResult(operator: Operator, left: ValueType, right: ValueType): ValueType {
  if (isInteger(left) && isInteger(right) && operator !== 'divby') return primitive('Edm.Int64')
  const floating = [left.name, right.name].some((name) => name === 'Edm.Double' || name === 'Edm.Single')
  return primitive(floating ? 'Edm.Double' : 'Edm.Decimal')
}

function resultType(operator: Operator, left: ValueType, right: ValueType): ValueType | undefined {
  if (left.collection || right.collection) return undefined
  const families: readonly Family[] = [left.family, right.family]
  if (families.every((family) => family === 'number' || family === 'null')) {
    return families.includes('null') ? nullType : numberResult(operator, left, right)
  }
  if (families.includes('null')) return nullType
  return timeResults[`${left.family} ${operator} ${right.family}`]
}

/** `left operator right` on numbers, dates, times and durations. */
export function checkArithmetic(operator: Operator, left: TypedExpr, right: TypedExpr): ArithmeticNode {
  const type = resultType(operator, left.type, right.type)
  if (type === undefined) {
    const operands = `${describeType(left.type)} and ${describeType(right.type)}`
    throw new QueryError(`${operator} does not work on ${operands}`, right.position)
  }
  if (['div', 'divby', 'mod'].includes(operator) && right.kind === 'constant' && right.value === 0) {
    throw new QueryError('Division by zero', right.position)
  }
  const plain = operator === 'divby' ? 'div' : operator
  return {
    kind: 'arithmetic',
    operator: plain,
    integer: isInteger(type),
    left,
    right,
    type,
    position: left.position,
  }
}

/** `-operand` on a number or duration. */
export function checkNegation(operand: TypedExpr, position: number): UnaryNode {
  const { family, collection } = operand.type
  if (collection || !['number', 'duration', 'null'].includes(family)) {
    throw new QueryError(`- does not work on ${describeType(operand.type)}`, operand.position)
  }
  return { kind: 'negate', operand, type: operand.type, position }
}
