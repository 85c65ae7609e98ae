import type { Expr } from '../ast.ts'
import type { ModelIndex } from '../typed/model-index.ts'
import { QueryError } from '../query-error.ts'
import type { ConstantNode, MemberNode, TypedExpr } from '../typed/typed-ast.ts'
import { nullType, primitive, type ValueType } from '../typed/value-type.ts'

/** The names that an expression may refer to at one place of a query. */
export interface Scope {
  readonly index: ModelIndex
  /** The checker of any expression; here because paths hold expressions and expressions hold paths. */
  readonly check: (expression: Expr, scope: Scope) => TypedExpr
  /** The instance whose members need no prefix; `$this`. */
  readonly instance: MemberNode
  /** The entity that the whole query is about; `$it`. */
  readonly it: MemberNode
  /** Lambda variables by name. */
  readonly variables: ReadonlyMap<string, MemberNode>
  readonly aliases: ReadonlyMap<string, Expr>
  /** Aliases whose values enclose this place: none of them may be used again. */
  readonly openAliases: ReadonlySet<string>
  /** Counts the uses of aliases in one check; fails at the first beyond the bound. */
  readonly countAliasUse: (position: number) => void
  /** Hands out variable numbers; shared by all scopes of one check. */
  readonly newVariable: () => number
  /** Milliseconds since 1970 for `now()`. */
  readonly now: number | undefined
}

export const booleanType: ValueType = primitive('Edm.Boolean')

/** The constant null. */
export const nullConstant = (position: number): ConstantNode => ({
  kind: 'constant',
  value: null,
  type: nullType,
  position,
})

/** How error messages name a type. */
export const describeType = ({ name, collection }: ValueType): string =>
  collection ? `Collection(${name})` : name

/** The node, where it is a truth value or null; otherwise a `QueryError` at it. */
export function requireBoolean(node: TypedExpr): TypedExpr {
  const { family, collection } = node.type
  if (!collection && (family === 'boolean' || family === 'null')) return node
  throw new QueryError(`Expected a condition, found ${describeType(node.type)}`, node.position)
}

/** The node, where it is one value; otherwise a `QueryError` at it. */
export function requireSingle(node: TypedExpr): TypedExpr {
  if (!node.type.collection) return node
  throw new QueryError('A collection can be used with any, all, in and $count only', node.position)
}
