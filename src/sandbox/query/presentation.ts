import type { ModelIndex, QueryOptions, StructuredType } from '../../odata/index.ts'
import { type MetadataLevel, readPreferences } from '../../v2/index.ts'
import { jsonMediaType, jsonReply, type Reply } from '../http/reply.ts'
import { contextRoot, type RoutedRequest, type ServiceRequest } from '../http/request.ts'
import type { Entity, Json } from '../json.ts'

/**
 * How an answer is annotated (OData JSON format 3.1). The full level has the type of each entity, and nothing that a client
 * can compute from `$metadata`.
 */
interface Presentation {
  /** URL of the service root. */
  readonly root: string
  readonly level: MetadataLevel
}

/** The level that a client asks for: `$format` wins over `Accept` (OData protocol 8.2.1), also where it names no level. */
export function levelOf(format: string | undefined, request: ServiceRequest): MetadataLevel {
  return readPreferences('', format ?? request.header('accept') ?? '').metadata
}

/** How the answer to a request is annotated. */
export function presentationOf({ format }: QueryOptions, request: RoutedRequest): Presentation {
  return { root: contextRoot(request), level: levelOf(format, request) }
}

/**
 * Writes a collection: context (all that follows `$metadata#`), count where asked for, rows, link to the next page (OData JSON format
 * 12).
 */
export function collectionReply(
  { root, level }: Presentation,
  context: string,
  rows: readonly Json[],
  count?: number,
  next?: string,
): Reply {
  const body = {
    ...(level === 'none' ? {} : { '@odata.context': `${root}/$metadata#${context}` }),
    ...(count === undefined ? {} : { '@odata.count': count }),
    value: rows,
    ...(next === undefined ? {} : { '@odata.nextLink': next }),
  }
  return jsonReply(200, JSON.stringify(body), { 'Content-Type': jsonMediaType(level) })
}

/** Writes one entity of a set, or one value: `context` is all that follows `$metadata#`. */
export function entityReply(
  status: number,
  { root, level }: Presentation,
  context: string,
  entity: Record<string, Json>,
): Reply {
  const body = level === 'none' ? entity : { '@odata.context': `${root}/$metadata#${context}`, ...entity }
  return jsonReply(status, JSON.stringify(body), { 'Content-Type': jsonMediaType(level) })
}

/** A raw value or a count as text (OData protocol 11.2.4.1, 11.2.10). */
export function plainText(text: string): Reply {
  return jsonReply(200, text, { 'Content-Type': 'text/plain' })
}

/** The key of an entity as a path has it: `(<guid>)`, or all names where the key has several. */
export function keyPredicate(type: StructuredType, entity: Entity, index: ModelIndex): string {
  const parts = type.key.map((name) => {
    const given = entity[name]
    const value = typeof given === 'object' || given === undefined ? '' : String(given)
    const declared = type.properties.get(name)?.type ?? ''
    const text = index.findType(declared)?.kind === 'enum' ? `${declared}'${value}'` : value
    return type.key.length === 1 ? text : `${name}=${text}`
  })
  return `(${parts.join(',')})`
}
