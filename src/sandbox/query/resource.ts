import { isGuid, parseResourcePath, QueryError } from '../../odata/index.ts'
import type { KeyPart, PathSegment } from '../../odata/index.ts'

/** A resource path: an entity set, the key of one of its entities, and the rest. */
export interface Resource {
  readonly set: string
  readonly key: readonly KeyPart[] | undefined
  readonly rest: readonly PathSegment[]
  /** Whether `/$value` ends the path. */
  readonly isRaw: boolean
}

const limits = { maxLength: 4096, maxDepth: 20 }

/**
 * Reads a resource path (OData URL conventions 4): `Set`, `Set(key)`, `Set(key)/Link`, `Set/NS.Function(…)`,
 * `Set/$count`, `Set(key)/Property/$value`. Undefined for a path of another form.
 */
export function readResource(segments: readonly string[]): Resource | undefined {
  // The parser takes blanks and tabs where a client writes them into a query; no name in a path has one around it, and no path a tab.
  if (segments.some((segment) => segment !== segment.trim() || segment.includes('\t'))) return undefined
  try {
    const isRaw = segments.at(-1)?.toLowerCase() === '$value'
    const path = isRaw ? segments.slice(0, -1) : segments
    const [first, second, ...rest] = parseResourcePath(path.join('/'), limits)
    if (first?.kind !== 'property') return undefined
    if (second?.kind === 'key') return { set: first.name, key: second.parts, rest, isRaw }
    return { set: first.name, key: undefined, rest: second === undefined ? [] : [second, ...rest], isRaw }
  } catch (error) {
    if (error instanceof QueryError) return undefined
    throw error
  }
}

/**
 * The values of a key predicate in the order of the key's names, as text: guids in lower case, in apostrophes or not, enumeration members by
 * name. Undefined where the predicate does not fit the key: nothing is found then.
 */
export function keyValues(parts: readonly KeyPart[], names: readonly string[]): string[] | undefined {
  if (parts.length !== names.length) return undefined
  const values = names.map((name) => {
    const part = parts.find((one) => one.name === name) ?? (names.length === 1 ? parts[0] : undefined)
    return part === undefined || (part.name ?? name) !== name ? undefined : keyText(part)
  })
  const known = values.filter((value) => value !== undefined)
  return known.length === names.length ? known : undefined
}

function keyText({ value }: KeyPart): string | undefined {
  if (value.kind === 'enum') return value.members.length === 1 ? value.members[0] : undefined
  if (value.kind === 'alias') return undefined
  return isGuid(value.value) ? value.value.toLowerCase() : value.value
}
