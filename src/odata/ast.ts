interface Positioned {
  /** Index of the node's first character in the percent-decoded text, counted from 0. */
  readonly position: number
}

/** The type that follows from the spelling of a literal. A type check may change the type, for example from a string to an enumeration. */
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
 * A primitive literal. `value` has no quotes, no prefix and no doubled apostrophes: `O'Neil` for `'O''Neil'`, `PT1H` for `duration'PT1H'`,
 * `true` for `TRUE`. A leading `+` of a number is dropped. Letters in durations and date-times become upper case. Numbers and guids
 * otherwise stay as written.
 */
export interface Literal extends Positioned {
  readonly kind: 'literal'
  readonly type: LiteralType
  readonly value: string
}

/** An enumeration literal with its type, such as `SIMS.GroupTypeEnum'YearGroup'`. Without the type, the text is a string `Literal`. */
export interface EnumLiteral extends Positioned {
  readonly kind: 'enum'
  /** The type name as written, with or without a namespace. */
  readonly typeName: string
  /** The names or numbers of the members. Never empty. */
  readonly members: readonly string[]
}

/** A list such as `(1,2)` after `in`, which contains only literals (OData ABNF listExpr). */
export interface ListExpr extends Positioned {
  readonly kind: 'list'
  readonly items: readonly (Literal | EnumLiteral)[]
}

export interface ArrayExpr extends Positioned {
  readonly kind: 'array'
  readonly items: readonly Expr[]
}

export interface ObjectMember extends Positioned {
  readonly name: string
  readonly value: Expr
}

/** A JSON object `{"name":value}` whose values may be expressions. */
export interface ObjectExpr extends Positioned {
  readonly kind: 'object'
  readonly members: readonly ObjectMember[]
}

/** Two or more operands of one operator. `a or b or c` is a single node, and `a or (b or c)` is two nodes. */
export interface LogicalExpr extends Positioned {
  readonly kind: 'and' | 'or'
  readonly operands: readonly Expr[]
}

export type BinaryOperator =
  'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le' | 'has' | 'in' | 'add' | 'sub' | 'mul' | 'div' | 'divby' | 'mod'

/** An operation with a left-associative operator other than `and` and `or`. `position` is the position of the left operand. */
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

/** A call of a built-in function. `name` has its canonical spelling (`startswith`, `matchesPattern`). */
export interface CallExpr extends Positioned {
  readonly kind: 'call'
  readonly name: string
  readonly arguments: readonly Expr[]
}

/** An expression `cast(x,T)` or `isof(x,T)`. Without an operand, the expression applies to the current instance. */
export interface TypeExpr extends Positioned {
  readonly kind: 'cast' | 'isof'
  readonly operand?: Expr
  /** The type name as written: `Edm.String`, `Svc.LearnerGroup`, `Collection(Edm.Int32)`. */
  readonly typeName: string
}

/** The start of a path. `member` stands for the current instance. */
export type PathRoot =
  | { readonly kind: 'member' }
  | { readonly kind: '$it' | '$this' | '$root' }
  | { readonly kind: 'variable' | 'alias'; /** Alias names without the `@`. */ readonly name: string }

/** A property, a navigation property or an unqualified type name. Only a model can distinguish them. */
export interface PropertySegment extends Positioned {
  readonly kind: 'property'
  readonly name: string
}

/** A qualified type name as a path segment, as in `Address/Model.AddressWithLocation`. */
export interface TypeCastSegment extends Positioned {
  readonly kind: 'typeCast'
  readonly typeName: string
}

/** A value in a key predicate: a literal or a parameter alias. The name of the alias has no `@`. */
export type KeyValue =
  Literal | EnumLiteral | ({ readonly kind: 'alias'; readonly name: string } & Positioned)

export interface KeyPart extends Positioned {
  /** The name of the key property. Absent in the short form `(value)`. */
  readonly name?: string
  readonly value: KeyValue
}

/** A key such as `(<guid>)` or `(ExternalID=<guid>,GroupType=…)`. The key has one part without a name, or one or more parts with names. */
export interface KeySegment extends Positioned {
  readonly kind: 'key'
  readonly parts: readonly KeyPart[]
}

/** A `/$count` segment. `filter` is set for `$count($filter=…)`. */
export interface CountSegment extends Positioned {
  readonly kind: '$count'
  readonly filter?: Expr
}

export interface FilterSegment extends Positioned {
  readonly kind: '$filter'
  readonly predicate: Expr
}

/** `/any(x:…)` or `/all(x:…)`. The form `any()` has no `lambda`. */
export interface LambdaSegment extends Positioned {
  readonly kind: 'any' | 'all'
  readonly lambda?: { readonly variable: string; readonly predicate: Expr }
}

export interface FunctionParameter extends Positioned {
  readonly name: string
  readonly value: Expr
}

/** A function of the service, such as `SIMS.Changes(startDate=…)`. An unqualified name with literal arguments is parsed as a key. */
export interface FunctionSegment extends Positioned {
  readonly kind: 'function'
  readonly name: string
  readonly parameters: readonly FunctionParameter[]
}

/** An annotation as a path segment, such as `@Core.Messages` or `@Measures.Currency#Qualifier`. */
export interface AnnotationSegment extends Positioned {
  readonly kind: 'annotation'
  /** The term name without the `@`. */
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

/** A path such as `Attendee/ExternalID`, `$it/Name`, `@p1` or `Notes/$count`. A path with the root `member` has at least one segment. */
export interface PathExpr extends Positioned {
  readonly kind: 'path'
  readonly root: PathRoot
  readonly segments: readonly PathSegment[]
}

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
  /** `asc` if the text gives no direction. */
  readonly direction: 'asc' | 'desc'
}

/** A name in the path of `$expand` or `$select`: a property, a qualified type name, or `star` (`*`). */
export interface ItemSegment extends Positioned {
  readonly kind: 'property' | 'typeCast' | 'star'
  readonly name: string
}

/** An item of `$expand`, such as `A/NS.Type/$ref($filter=…;$top=…)`. */
export interface ExpandItem extends Positioned {
  /** The path, which is never empty. Only its last segment may be a `star`. */
  readonly path: readonly ItemSegment[]
  readonly suffix?: '$ref' | '$count'
  /** Empty if the item has no parentheses. */
  readonly options: QueryOptions
}

/** An item of `$select`: `*` or a path. `select` is set for the form `A($select=…)`. */
export interface SelectItem extends Positioned {
  readonly path: readonly ItemSegment[]
  readonly select?: readonly SelectItem[]
}

/** The parsed system query options of a request or an `$expand` item. Options that were not given are absent. */
export interface QueryOptions {
  readonly filter?: Expr
  readonly expand?: readonly ExpandItem[]
  readonly select?: readonly SelectItem[]
  readonly orderby?: readonly OrderByItem[]
  readonly top?: number
  readonly skip?: number
  readonly count?: boolean
  readonly levels?: number | 'max'
  readonly skiptoken?: string
  readonly format?: string
  /** The values of the parameter aliases (`@name=…`), by name without the `@`. */
  readonly aliases?: ReadonlyMap<string, Expr>
}
