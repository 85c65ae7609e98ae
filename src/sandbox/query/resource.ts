import { parseFilter, QueryError } from '../../odata/index.ts'
import type { KeyPart, PathSegment } from '../../odata/index.ts'

/** A resource path: an entity set, the key of one of its entities, and what follows. */
export interface Resource {
  readonly set: string
  readonly key: readonly KeyPart[] | undefined
  readonly rest: readonly PathSegment[]
}

/**
 * Reads a resource path (OData URL conventions 4.3): `Set`, `Set(key)`, `Set(key)/Link`, `Set/NS.Function(…)`,
 * `Set/$count`. Undefined for a path of another form.
 */
export function readResource(segments: readonly string[]): Resource | undefined {
  const text = segments.join('/')
  try {
    const path = parseFilter(text, { maxLength: 4096, maxDepth: 20 })
    if (path.kind !== 'path' || path.root.kind !== 'member') return undefined
    const [first, second, ...rest] = path.segments
    if (first?.kind !== 'property') return undefined
    if (second?.kind === 'key') return { set: first.name, key: second.parts, rest }
    return { set: first.name, key: undefined, rest: second === undefined ? [] : [second, ...rest] }
  } catch (error) {
    if (error instanceof QueryError) return undefined
    throw error
  }
}

/**
 * The values of a key predicate in the order of the key's names, as text: guids in lower case, enumeration members by
 * name. Undefined where the predicate does not fit the key.
 */
export function keyValues(parts: readonly KeyPart[], names: readonly string[]): string[] | undefined {
  if (parts.length !== names.length) return undefined
  const values = names.map((name, index) => {
    const part = parts.find((one) => one.name === name) ?? (parts.length === 1 ? parts[index] : undefined)
    if (part === undefined || (part.name !== undefined && part.name !== name)) return undefined
    const { value } = part
    if (value.kind === 'enum') return value.members.length === 1 ? value.members[0] : undefined
    if (value.kind === 'alias') return undefined
    return value.type === 'Edm.Guid' ? value.value.toLowerCase() : value.value
  })
  const known = values.filter((value) => value !== undefined)
  return known.length === names.length ? known : undefined
}
