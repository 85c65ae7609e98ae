import type { NavigationProperty } from '../csdl.ts'
import type { StructuredType } from './model-index.ts'
import type { Scalar, ValueType } from './scalar.ts'

interface Typed {
  readonly type: ValueType
  /** Index of the node's first character in the parsed text, counted from 0. */
  readonly position: number
}

export interface ConstantNode extends Typed {
  readonly kind: 'constant'
  readonly value: Scalar
}

/** A property, identified by the names that lead to it from a variable. Variable 0 is `$it`; lambda variables have higher numbers. */
export interface MemberNode extends Typed {
  readonly kind: 'member'
  readonly variable: number
  /** The names on the way to the property. Empty if the node is the variable itself. */
  readonly path: readonly string[]
}

export type Comparison = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le'

/** A comparison of two values of one family, or of a value with null. The result is never null. */
export interface CompareNode extends Typed {
  readonly kind: 'compare'
  readonly operator: Comparison
  readonly left: TypedExpr
  readonly right: TypedExpr
}

export interface InNode extends Typed {
  readonly kind: 'in'
  readonly operand: TypedExpr
  readonly items: readonly TypedExpr[]
}

/** A `has` test: true if the left enumeration value has all flags of the right one. */
export interface HasNode extends Typed {
  readonly kind: 'has'
  readonly left: TypedExpr
  readonly right: TypedExpr
}

export type Arithmetic = 'add' | 'sub' | 'mul' | 'div' | 'mod'

/** Arithmetic on numbers or times. `divby` is represented as a `div` whose `integer` is false. */
export interface ArithmeticNode extends Typed {
  readonly kind: 'arithmetic'
  readonly operator: Arithmetic
  readonly integer: boolean
  readonly left: TypedExpr
  readonly right: TypedExpr
}

export interface LogicalNode extends Typed {
  readonly kind: 'and' | 'or'
  readonly operands: readonly TypedExpr[]
}

export interface UnaryNode extends Typed {
  readonly kind: 'not' | 'negate'
  readonly operand: TypedExpr
}

export interface CallNode extends Typed {
  readonly kind: 'call'
  readonly name: string
  readonly arguments: readonly TypedExpr[]
}

/** A conversion to `type`. The result is null if the value cannot be converted. */
export interface CastNode extends Typed {
  readonly kind: 'cast'
  readonly operand: TypedExpr
}

/** A collection-valued member, narrowed by the `$filter` segments of its path. `variable` stands for each item. */
export interface ItemSource {
  readonly collection: MemberNode
  readonly variable: number
  readonly filters: readonly TypedExpr[]
}

/** An `any` or `all` over the items. An `any` without a predicate is true if there is at least one item. */
export interface LambdaNode extends Typed {
  readonly kind: 'any' | 'all'
  readonly source: ItemSource
  readonly predicate?: TypedExpr
}

export interface CountNode extends Typed {
  readonly kind: 'count'
  readonly source: ItemSource
}

/** An expression that was checked against a model. Its names are resolved, its aliases replaced and its literals promoted. */
export type TypedExpr =
  | ConstantNode
  | MemberNode
  | CompareNode
  | InNode
  | HasNode
  | ArithmeticNode
  | LogicalNode
  | UnaryNode
  | CallNode
  | CastNode
  | LambdaNode
  | CountNode

export interface TypedOrderBy {
  readonly expression: TypedExpr
  readonly direction: 'asc' | 'desc'
}

/** The selected properties by name: either the whole property or parts of a complex one. */
export type Selection = ReadonlyMap<string, Selection | 'all'>

/** A checked item of `$expand`. `*` is replaced by the navigation properties that it stands for. */
export interface TypedExpand {
  readonly property: NavigationProperty
  readonly target: StructuredType
  /** True if the query asks only for the number of entities (`/$count`). */
  readonly isCount: boolean
  readonly query: TypedQuery
}

/** The query options of a request or an `$expand` item, checked against an entity type. */
export interface TypedQuery {
  readonly filter?: TypedExpr
  /** Empty if the query has no `$orderby`. */
  readonly orderby: readonly TypedOrderBy[]
  /** Absent if the query selects all structural properties. */
  readonly select?: Selection
  /** At most one item per navigation property. Empty if the query has no `$expand`. */
  readonly expand: readonly TypedExpand[]
  readonly top?: number
  readonly skip?: number
  readonly count: boolean
}
