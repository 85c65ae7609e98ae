import {
  checkQuery,
  inOption,
  type ModelIndex,
  printSelection,
  type QueryOptions,
  type Selection,
  type StructuredType,
  type TypedExpand,
  type TypedExpr,
  type TypedQuery,
} from '../../odata/index.ts'
import type { MetadataLevel } from '../../v2/index.ts'
import { type Entity, isEntity, type Json } from '../json.ts'
import { compileComparator, compilePredicate, type VisitBudget } from './compile-expression.ts'

export interface QueryContext {
  readonly index: ModelIndex
  /** The value of `now()` in milliseconds since 1970. */
  readonly now: number
  readonly pageSize: number
}

/** A query that is ready to run, for a request or for an expanded collection. */
export interface CompiledQuery {
  /** The checked `$filter`, or `undefined` if every entity matches. */
  readonly filter: TypedExpr | undefined
  readonly matches: (entity: Entity) => boolean
  /** Compares entities for `$orderby`, or is `undefined` for the natural order. */
  readonly compare: ((one: Entity, other: Entity) => number) | undefined
  readonly project: (entity: Entity) => Record<string, Json>
  /** The selected members as a context URL shows them (OData protocol 10.7), such as `(Surname,Forename)`. Empty for all members. */
  readonly selection: string
  readonly skip: number
  readonly top: number | undefined
  readonly count: boolean
}

/** The maximum number of collection items that all conditions of one query may visit, which is far more than a school needs. */
const maxVisits = 200_000

/** Checks and compiles query options. Entities at the level `full` contain their type. Throws `QueryError` with option and position. */
export function compileQuery(
  options: QueryOptions,
  typeName: string,
  { index, now }: Pick<QueryContext, 'index' | 'now'>,
  level?: MetadataLevel,
): CompiledQuery {
  const checked = checkQuery(options, typeName, index, { now })
  return compileTyped(checked, index.structured(typeName), index, { left: maxVisits }, level)
}

/** Returns the matching entities in the requested order. The caller applies `$skip` and `$top`. */
function findEntities(query: CompiledQuery, entities: readonly Entity[]): Entity[] {
  const found = entities.filter((entity) => query.matches(entity))
  return query.compare === undefined ? found : found.sort(query.compare)
}

type Compile = (query: TypedQuery, type: StructuredType) => CompiledQuery

function compileTyped(
  query: TypedQuery,
  type: StructuredType,
  index: ModelIndex,
  budget: VisitBudget,
  level: MetadataLevel | undefined,
  outer?: '$expand',
): CompiledQuery {
  const { filter, orderby } = query
  const nested: Compile = (inner, target) => compileTyped(inner, target, index, budget, level, '$expand')
  // `inOption` adds the name of the option to errors that occur only while the query runs.
  const test = filter === undefined ? undefined : compilePredicate(filter, index, budget)
  const order = orderby.length === 0 ? undefined : compileComparator(orderby, index, budget)
  return {
    filter,
    matches: (entity) => test === undefined || inOption(outer ?? '$filter', () => test(entity)),
    compare: order && ((one, other) => inOption(outer ?? '$orderby', () => order(one, other))),
    project: compileProjection(query, type, nested, level),
    selection: printSelection(query),
    skip: query.skip ?? 0,
    top: query.top,
    count: query.count,
  }
}

/**
 * Compiles `$select` and `$expand` to a function. Without `$select`, the result contains all structural properties. Navigation properties
 * are contained only if they are expanded (OData URL conventions 5.1.2, 5.1.3).
 */
function compileProjection(
  { select, expand }: TypedQuery,
  type: StructuredType,
  compile: Compile,
  level: MetadataLevel | undefined,
): CompiledQuery['project'] {
  const properties = [...type.properties.keys()]
  const shown = select === undefined ? properties : properties.filter((name) => select.has(name))
  const links = expand.map((item) => compileLink(item, compile))
  return (entity) => {
    const result: Record<string, Json> = level === 'full' ? { '@odata.type': `#${type.name}` } : {}
    for (const name of shown) {
      const value = entity[name]
      if (value !== undefined) result[name] = selectPart(value, select?.get(name) ?? 'all')
    }
    for (const link of links) link(entity, result)
    return result
  }
}

function selectPart(value: Json, selection: Selection | 'all'): Json {
  if (selection === 'all' || !isEntity(value)) return value
  const part: Record<string, Json> = {}
  for (const [name, inner] of selection) {
    const member = value[name]
    if (member !== undefined) part[name] = selectPart(member, inner)
  }
  return part
}

type Link = (entity: Entity, result: Record<string, Json>) => void

function compileLink({ property, target, isCount, query }: TypedExpand, compile: Compile): Link {
  const { name } = property
  const nested = compile(query, target)
  return (entity, result) => {
    const value = entity[name] ?? null
    if (!Array.isArray(value)) {
      result[name] = isEntity(value) ? nested.project(value) : null
      return
    }
    const found = findEntities(nested, value.filter(isEntity))
    if (nested.count || isCount) result[`${name}@odata.count`] = found.length
    if (isCount) return
    const end = nested.top === undefined ? undefined : nested.skip + nested.top
    result[name] = found.slice(nested.skip, end).map((item) => nested.project(item))
  }
}
