import { isInstant, type Scalar } from '../typed/scalar.ts'
import type { Arithmetic, ArithmeticNode } from '../typed/typed-ast.ts'
import { toNumber } from './compare-scalars.ts'

const dayMs = 86_400_000

function calculate(operator: Arithmetic, left: number, right: number): number | null {
  switch (operator) {
    case 'add':
      return left + right
    case 'sub':
      return left - right
    case 'mul':
      return left * right
    case 'div':
      return right === 0 ? null : left / right
    case 'mod':
      return right === 0 ? null : left % right
  }
}

/**
 * The result of an arithmetic node for two values (OData URL conventions 5.1.1.2); null where an operand is null. A
 * division by a zero of the data is null too: it must not fail the request for one row.
 */
export function computeArithmetic(node: ArithmeticNode, left: Scalar, right: Scalar): Scalar {
  if (left === null || right === null) return null
  const result = calculate(node.operator, toNumber(left), toNumber(right))
  if (result === null) return null
  switch (node.type.family) {
    case 'instant':
      return { ms: result, offsetMinutes: isInstant(left) ? left.offsetMinutes : 0 }
    case 'date':
      // A day plus less than a day is that day, minus less than a day the day before.
      return Math.floor(result / dayMs) * dayMs
    default:
      return node.integer ? Math.trunc(result) : result
  }
}
