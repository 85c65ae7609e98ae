import type { SearchExpr } from '../ast.ts'
import type { NavigationProperty } from '../csdl.ts'
import type { StructuredType } from './model-index.ts'
import type { TypedExpr } from './typed-ast.ts'

/** A checked item of `$orderby`: a single primitive or enumeration value. */
export interface TypedOrderBy {
  readonly expression: TypedExpr
  readonly direction: 'asc' | 'desc'
}

/** What `$select` asks for, by property name: all of a property, or parts of a complex one. */
export type Selection = ReadonlyMap<string, Selection | 'all'>

/** A checked item of `$expand`; a star is replaced by its navigation properties. */
export interface TypedExpand {
  /** Complex properties on the way, then the navigation property. */
  readonly path: readonly string[]
  readonly property: NavigationProperty
  /** The entity type at the other end. */
  readonly target: StructuredType
  /** The entities themselves, their references (`/$ref`), or their number (`/$count`). */
  readonly mode: 'entities' | 'references' | 'count'
  /** How often a property that leads back to its own type is followed. Default 1. */
  readonly levels: number | 'max'
  readonly query: TypedQuery
}

/** The query options of a request or an `$expand` item, checked against an entity type. */
export interface TypedQuery {
  readonly filter?: TypedExpr
  readonly search?: SearchExpr
  /** Empty where not given. */
  readonly orderby: readonly TypedOrderBy[]
  /** Absent where all structural properties are asked for. */
  readonly select?: Selection
  /** Empty where not given; at most one item for a path. */
  readonly expand: readonly TypedExpand[]
  readonly top?: number
  readonly skip?: number
  /** Whether the number of all matches is asked for. */
  readonly count: boolean
  readonly skiptoken?: string
}
