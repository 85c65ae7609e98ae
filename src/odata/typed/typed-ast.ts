import type { NavigationProperty } from '../csdl.ts'
import type { StructuredType } from './model-index.ts'
import type { Scalar, ValueType } from './scalar.ts'

/** The members of every node of a checked expression. */
interface Typed {
  readonly type: ValueType
  /** Index of the node's first character in the text that was parsed, from 0. */
  readonly position: number
}

/** A literal, promoted to the type that its place asks for. */
export interface ConstantNode extends Typed {
  readonly kind: 'constant'
  readonly value: Scalar
}

/** A property, by its names from a variable on: `$it` and its members are variable 0, lambda variables follow. */
export interface MemberNode extends Typed {
  readonly kind: 'member'
  readonly variable: number
  /** Empty for the variable itself. */
  readonly path: readonly string[]
}

export type Comparison = 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le'

/** A comparison of two values of one family, or of either with null; itself never null. */
export interface CompareNode extends Typed {
  readonly kind: 'compare'
  readonly operator: Comparison
  readonly left: TypedExpr
  readonly right: TypedExpr
}

/** `in`: equal to one of the items. */
export interface InNode extends Typed {
  readonly kind: 'in'
  readonly operand: TypedExpr
  readonly items: readonly TypedExpr[]
}

/** `has`: all flags of the right enumeration value set in the left. */
export interface HasNode extends Typed {
  readonly kind: 'has'
  readonly left: TypedExpr
  readonly right: TypedExpr
}

export type Arithmetic = 'add' | 'sub' | 'mul' | 'div' | 'mod'

/** Arithmetic on numbers or times; `divby` is a `div` that is not `integer`. */
export interface ArithmeticNode extends Typed {
  readonly kind: 'arithmetic'
  readonly operator: Arithmetic
  /** Whether the quotient is cut to a whole number. */
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
  /** Canonical name of a built-in function. */
  readonly name: string
  readonly arguments: readonly TypedExpr[]
}

/** A conversion to `type`; null where the value has no such form. */
export interface CastNode extends Typed {
  readonly kind: 'cast'
  readonly operand: TypedExpr
}

/** A collection-valued member, its items bound to `variable`, narrowed by the `$filter` segments of its path. */
export interface ItemSource {
  readonly collection: MemberNode
  readonly variable: number
  readonly filters: readonly TypedExpr[]
}

/** `any` or `all` over the items; without a predicate `any` asks whether there is one. */
export interface LambdaNode extends Typed {
  readonly kind: 'any' | 'all'
  readonly source: ItemSource
  readonly predicate?: TypedExpr
}

/** The number of items. */
export interface CountNode extends Typed {
  readonly kind: 'count'
  readonly source: ItemSource
}

/** An expression that has been checked against a model: names resolved, aliases replaced, literals promoted. */
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

/** A checked item of `$orderby`: a single primitive or enumeration value. */
export interface TypedOrderBy {
  readonly expression: TypedExpr
  readonly direction: 'asc' | 'desc'
}

/** What `$select` asks for, by property name: all of a property, or parts of a complex one. */
export type Selection = ReadonlyMap<string, Selection | 'all'>

/** A checked item of `$expand`; a star is replaced by its navigation properties. */
export interface TypedExpand {
  readonly property: NavigationProperty
  /** The entity type at the other end. */
  readonly target: StructuredType
  /** True if only the number of the entities is asked for (`/$count`). */
  readonly isCount: boolean
  readonly query: TypedQuery
}

/** The query options of a request or an `$expand` item, checked against an entity type. */
export interface TypedQuery {
  readonly filter?: TypedExpr
  /** Empty where not given. */
  readonly orderby: readonly TypedOrderBy[]
  /** Absent where all structural properties are asked for. */
  readonly select?: Selection
  /** Empty where not given; at most one item for a property. */
  readonly expand: readonly TypedExpand[]
  readonly top?: number
  readonly skip?: number
  /** Whether the number of all matches is asked for. */
  readonly count: boolean
}
