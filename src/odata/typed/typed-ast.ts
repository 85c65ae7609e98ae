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

/** A reference to a property by its path from a variable. Variable 0 is `$it`. Lambda variables have higher numbers. */
export interface MemberNode extends Typed {
  readonly kind: 'member'
  readonly variable: number
  /** The names of the properties on the path. Empty if the node is the variable itself. */
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

/** A `has` test, which is true if the left enumeration value has all flags of the right enumeration value. */
export interface HasNode extends Typed {
  readonly kind: 'has'
  readonly left: TypedExpr
  readonly right: TypedExpr
}

export type Arithmetic = 'add' | 'sub' | 'mul' | 'div' | 'mod'

/** Arithmetic on numbers or times. `divby` becomes a `div` whose `integer` is false. */
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

/** The items of a collection that match the `$filter` segments of its path. In the filters, `variable` stands for the item. */
export interface ItemSource {
  readonly collection: MemberNode
  readonly variable: number
  readonly filters: readonly TypedExpr[]
}

/** An `any` or `all` over the items of a collection. An `any` without a predicate is true if there is at least one item. */
export interface LambdaNode extends Typed {
  readonly kind: 'any' | 'all'
  readonly source: ItemSource
  readonly predicate?: TypedExpr
}

export interface CountNode extends Typed {
  readonly kind: 'count'
  readonly source: ItemSource
}

/** An expression that was checked against a model. Names are resolved, aliases are replaced, and literals have the needed types. */
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

/** The selected properties by name. The value is `all` for a whole property, or the selected parts of a complex property. */
export type Selection = ReadonlyMap<string, Selection | 'all'>

/** A checked item of `$expand`. An item `*` has become one item for each navigation property. */
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
