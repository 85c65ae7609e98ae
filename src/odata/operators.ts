import type { BinaryOperator } from './ast.ts'

/** The precedence of the operators (OData URL conventions 5.1.1.17). An operator with a higher number binds tighter. */
export const precedence = {
  or: 1,
  and: 2,
  eq: 3,
  ne: 3,
  gt: 4,
  ge: 4,
  lt: 4,
  le: 4,
  add: 5,
  sub: 5,
  mul: 6,
  div: 6,
  divby: 6,
  mod: 6,
  unary: 7,
  has: 8,
  in: 8,
  primary: 9,
} as const satisfies Record<InfixOperator | 'unary' | 'primary', number>

export type InfixOperator = BinaryOperator | 'and' | 'or'

const operators: ReadonlyMap<string, InfixOperator> = new Map(
  (Object.keys(precedence) as (keyof typeof precedence)[])
    .filter((name) => name !== 'unary' && name !== 'primary')
    .map((name) => [name, name]),
)

/** Finds an operator by its name, ignoring case (OData 4.01). */
export function findOperator(word: string): InfixOperator | undefined {
  return operators.get(word) ?? operators.get(word.toLowerCase())
}
