import type { TypedExpr } from '../../odata/index.ts'
import type { Json } from '../seed/documents/field-rules.ts'

/** An entity as JSON, with its contained collections inside. */
export type Entity = Readonly<Record<string, Json>>

/** Reduces an entity to the requested members; annotations need the URL of its collection. */
export type Projection = (entity: Entity, collectionUrl?: string) => Record<string, Json>

/** A query ready to run, for the rows of a request or of one expanded collection. */
export interface CompiledQuery {
  /** The checked filter; undefined: every entity. */
  readonly filter: TypedExpr | undefined
  readonly matches: (entity: Entity) => boolean
  /** Undefined: the order of the service. */
  readonly compare: ((one: Entity, other: Entity) => number) | undefined
  readonly project: Projection
  readonly skip: number
  readonly top: number | undefined
  readonly count: boolean
}

/** The entities that match, in the order asked for; `$skip` and `$top` are left to the caller. */
export function findEntities(query: CompiledQuery, entities: readonly Entity[]): Entity[] {
  const found = entities.filter((entity) => query.matches(entity))
  return query.compare === undefined ? found : found.sort(query.compare)
}

/** True for a JSON object. */
export const isEntity = (value: Json): value is Record<string, Json> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
