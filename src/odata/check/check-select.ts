import type { ItemSegment, SelectItem } from '../ast.ts'
import { QueryError } from '../query-error.ts'
import type { ModelIndex, StructuredType } from '../typed/model-index.ts'
import type { Selection } from '../typed/typed-query.ts'

/** A selection while it is being put together. */
type Draft = Map<string, Draft | 'all'>

/** The type of a complex property, or of the type cast that repeats the type itself. */
function step(
  type: StructuredType,
  { kind, name, position }: ItemSegment,
  index: ModelIndex,
): StructuredType {
  if (kind === 'typeCast' && index.findType(name)?.name === type.name) return type
  const property = kind === 'property' ? type.properties.get(name) : undefined
  const next = property === undefined ? undefined : index.findType(property.type)
  if (next?.kind === 'complex') return next
  throw new QueryError(`${type.name} has no complex property ${name}`, position)
}

function addPath(
  draft: Draft,
  type: StructuredType,
  path: readonly ItemSegment[],
  index: ModelIndex,
): Draft | undefined {
  let level = draft
  let owner = type
  for (const segment of path.slice(0, -1)) {
    const next = step(owner, segment, index)
    if (next !== owner) {
      const known = level.get(segment.name)
      // All of it is asked for already.
      if (known === 'all') return undefined
      const inner: Draft = known ?? new Map<string, Draft | 'all'>()
      level.set(segment.name, inner)
      level = inner
    }
    owner = next
  }
  return level
}

/** Adds one item; false where it asks for everything at the top level. */
function addItem(draft: Draft, type: StructuredType, item: SelectItem, index: ModelIndex): boolean {
  const last = item.path.at(-1)
  if (last === undefined) return true
  if (item.parameterNames !== undefined || (last.kind === 'star' && last.name !== '*')) {
    throw new QueryError('Operations cannot be selected here', item.position)
  }
  if (last.kind === 'star') {
    if (item.path.length === 1) return false
    return addWhole(draft, type, item.path.slice(0, -1), index)
  }
  const { select, ...others } = item.options
  if (Object.keys(others).length > 0) throw new QueryError('Only $select is supported here', item.position)
  if (select === undefined) return addWhole(draft, type, item.path, index)
  for (const nested of select) {
    addItem(draft, type, { ...nested, path: [...item.path, ...nested.path] }, index)
  }
  return true
}

function addWhole(draft: Draft, type: StructuredType, path: readonly ItemSegment[], index: ModelIndex): true {
  const last = path.at(-1)
  if (last === undefined) return true
  const owner = path.slice(0, -1).reduce((from, segment) => step(from, segment, index), type)
  if (last.kind !== 'property' || !(owner.properties.has(last.name) || owner.navigation.has(last.name))) {
    throw new QueryError(`${owner.name} has no property ${last.name}`, last.position)
  }
  addPath(draft, type, path, index)?.set(last.name, 'all')
  return true
}

/** The selection of `$select`; `undefined` if it selects everything. Throws `QueryError` for members that the type lacks. */
export function checkSelect(
  items: readonly SelectItem[],
  type: StructuredType,
  index: ModelIndex,
): Selection | undefined {
  const draft: Draft = new Map()
  const partial = items.map((item) => addItem(draft, type, item, index))
  return partial.includes(false) ? undefined : draft
}
