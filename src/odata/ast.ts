/** A node of any syntax tree of this layer has its position in the source text. */
interface Positioned {
  /** Index of the node's first character in the percent-decoded text, from 0. */
  readonly position: number
}

/** EDM type that a literal's spelling alone gives it; a type check may promote it (`4` compared with a Decimal). */
export type LiteralType =
  | 'null'
  | 'Edm.Boolean'
  | 'Edm.Int32'
  | 'Edm.Int64'
  | 'Edm.Decimal'
  | 'Edm.Double'
  | 'Edm.String'
  | 'Edm.Guid'
  | 'Edm.Date'
  | 'Edm.DateTimeOffset'
  | 'Edm.TimeOfDay'
  | 'Edm.Duration'
  | 'Edm.Binary'

/**
 * A primitive literal. `value` is its lexical value without quotes, prefix or doubled apostrophes: `O'Neil` for
 * `'O''Neil'`, `PT1H` for `duration'PT1H'`, `true` for `TRUE`; numbers, dates and guids as written, without a leading `+`.
 */
export interface Literal extends Positioned {
  readonly kind: 'literal'
  readonly type: LiteralType
  readonly value: string
}

/** An enumeration literal with its type: `SIMS.GroupTypeEnum'YearGroup'`. Without a type it is a string `Literal`. */
export interface EnumLiteral extends Positioned {
  readonly kind: 'enum'
  /** As written, with or without namespace. */
  readonly typeName: string
  /** Member names or numbers, at least one. */
  readonly members: readonly string[]
}

/** `(1,2)` on the right of `in`: literals only (OData ABNF listExpr). */
export interface ListExpr extends Positioned {
  readonly kind: 'list'
  readonly items: readonly (Literal | EnumLiteral)[]
}

/** `[…]`, a JSON array whose items may be expressions. */
export interface ArrayExpr extends Positioned {
  readonly kind: 'array'
  readonly items: readonly Expr[]
}

export interface ObjectMember extends Positioned {
  readonly name: string
  readonly value: Expr
}

/** `{"name":value}`, a JSON object whose values may be expressions. */
export interface ObjectExpr extends Positioned {
  readonly kind: 'object'
  readonly members: readonly ObjectMember[]
}

/**
 * Two or more operands of one logical operator. One node for the whole run of `a or b or c`, so that a filter over
 * many learners stays flat; parentheses around a run of the same operator make a node of their own.
 */
export interface LogicalExpr extends Positioned {
  readonly kind: 'and' | 'or'
  readonly operands: readonly Expr[]
}

export type BinaryOperator =
  'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le' | 'has' | 'in' | 'add' | 'sub' | 'mul' | 'div' | 'divby' | 'mod'

/** A binary operator other than `and` and `or`; left-associative. `position` is that of the left operand. */
export interface BinaryExpr extends Positioned {
  readonly kind: 'binary'
  readonly operator: BinaryOperator
  readonly left: Expr
  readonly right: Expr
}

export interface UnaryExpr extends Positioned {
  readonly kind: 'not' | 'negate'
  readonly operand: Expr
}

/** A call of a built-in function, its name in the spelling of `functions.ts` (`startswith`, `matchesPattern`). */
export interface CallExpr extends Positioned {
  readonly kind: 'call'
  readonly name: string
  readonly arguments: readonly Expr[]
}

/** `cast(x,T)` and `isof(x,T)`; without operand the type of the current instance is meant. */
export interface TypeExpr extends Positioned {
  readonly kind: 'cast' | 'isof'
  readonly operand?: Expr
  /** As written: `Edm.String`, `Svc.LearnerGroup`, `Collection(Edm.Int32)`. */
  readonly typeName: string
}

/** Where a path begins: a member of the current instance, or a variable. */
export type PathRoot =
  | { readonly kind: 'member' }
  | { readonly kind: '$it' | '$this' | '$root' }
  | { readonly kind: 'variable' | 'alias'; /** Alias names without the `@`. */ readonly name: string }

/** A property, navigation property or unqualified type name: only a model can distinguish them. */
export interface PropertySegment extends Positioned {
  readonly kind: 'property'
  readonly name: string
}

/** A qualified type name as a path segment: `Address/Model.AddressWithLocation`. */
export interface TypeCastSegment extends Positioned {
  readonly kind: 'typeCast'
  readonly typeName: string
}

/** A value in a key predicate, or a parameter alias (named by `alias`, without the `@`). */
export type KeyValue =
  Literal | EnumLiteral | ({ readonly kind: 'alias'; readonly name: string } & Positioned)

export interface KeyPart extends Positioned {
  /** Absent in the short form `(value)`. */
  readonly name?: string
  readonly value: KeyValue
}

/** `(<guid>)` or `(ExternalID=<guid>,GroupType=…)`: one unnamed part, or one or more named parts. */
export interface KeySegment extends Positioned {
  readonly kind: 'key'
  readonly parts: readonly KeyPart[]
}

/** `/$count`, with the filter of `$count($filter=…)` where given. */
export interface CountSegment extends Positioned {
  readonly kind: '$count'
  readonly filter?: Expr
}

/** `/$filter(…)` on a collection. */
export interface FilterSegment extends Positioned {
  readonly kind: '$filter'
  readonly predicate: Expr
}

/** `/any(x:…)`, `/all(x:…)`; `any()` has neither variable nor predicate. */
export interface LambdaSegment extends Positioned {
  readonly kind: 'any' | 'all'
  readonly lambda?: { readonly variable: string; readonly predicate: Expr }
}

export interface FunctionParameter extends Positioned {
  readonly name: string
  readonly value: Expr
}

/** A function of the service: `SIMS.Changes(startDate=…)`. An unqualified name with arguments reads as a key. */
export interface FunctionSegment extends Positioned {
  readonly kind: 'function'
  readonly name: string
  readonly parameters: readonly FunctionParameter[]
}

/** `@Core.Messages` or `@Measures.Currency#Qualifier` as a path segment. */
export interface AnnotationSegment extends Positioned {
  readonly kind: 'annotation'
  /** Term name without the `@`. */
  readonly term: string
  readonly qualifier?: string
}

export type PathSegment =
  | PropertySegment
  | TypeCastSegment
  | KeySegment
  | CountSegment
  | FilterSegment
  | LambdaSegment
  | FunctionSegment
  | AnnotationSegment

/** `Attendee/ExternalID`, `$it/Name`, `m/Confidential`, `@p1`, `Notes/$count`. A `member` path has a segment. */
export interface PathExpr extends Positioned {
  readonly kind: 'path'
  readonly root: PathRoot
  readonly segments: readonly PathSegment[]
}

/** An expression of `$filter`, `$orderby` or a parameter alias; `kind` distinguishes the nodes. */
export type Expr =
  | Literal
  | EnumLiteral
  | ListExpr
  | ArrayExpr
  | ObjectExpr
  | LogicalExpr
  | BinaryExpr
  | UnaryExpr
  | CallExpr
  | TypeExpr
  | PathExpr

export interface OrderByItem extends Positioned {
  readonly expression: Expr
  /** Ascending where the text says nothing. */
  readonly direction: 'asc' | 'desc'
}

/** A name in the path of `$expand` or `$select`: a property, a qualified type name, or a `star` (`*`). */
export interface ItemSegment extends Positioned {
  readonly kind: 'property' | 'typeCast' | 'star'
  readonly name: string
}

/** `A/NS.Type/$ref($filter=…;$top=…)`. */
export interface ExpandItem extends Positioned {
  /** At least one segment; a `star` only at the end. */
  readonly path: readonly ItemSegment[]
  readonly suffix?: '$ref' | '$count'
  /** Empty where the item has no parentheses. */
  readonly options: QueryOptions
}

/** One item of `$select`: `*` or a path, with a `$select` of its own where `A($select=…)` gives one. */
export interface SelectItem extends Positioned {
  readonly path: readonly ItemSegment[]
  readonly select?: readonly SelectItem[]
}

/** The parsed system query options of one request, or of one `$expand` item; absent means not given. */
export interface QueryOptions {
  readonly filter?: Expr
  readonly expand?: readonly ExpandItem[]
  readonly select?: readonly SelectItem[]
  readonly orderby?: readonly OrderByItem[]
  /** Not negative. */
  readonly top?: number
  /** Not negative. */
  readonly skip?: number
  readonly count?: boolean
  readonly levels?: number | 'max'
  readonly skiptoken?: string
  readonly format?: string
  /** Values of `@name=…`, by name without the `@`. */
  readonly aliases?: ReadonlyMap<string, Expr>
}
