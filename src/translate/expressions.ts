import type { BinaryOperator, Expr, Literal } from '../odata/index.ts'

/** The member of a V3 record at a path. */
export function member(...names: readonly string[]): Expr {
  const segments = names.map((name) => ({ kind: 'property', name, position: 0 }) as const)
  return { kind: 'path', root: { kind: 'member' }, segments, position: 0 }
}

export function literal(type: Literal['type'], value: string): Expr {
  return { kind: 'literal', type, value, position: 0 }
}

export function compare(left: Expr, operator: BinaryOperator, right: Expr): Expr {
  return { kind: 'binary', operator, left, right, position: 0 }
}

/** All of the conditions, or one of them; a single one stays as it is. At least one. */
export function joined(kind: 'and' | 'or', conditions: readonly Expr[]): Expr {
  const [only, ...more] = conditions
  return only !== undefined && more.length === 0 ? only : { kind, operands: conditions, position: 0 }
}
