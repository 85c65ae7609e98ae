import type { ModelIndex, QueryOptions, StructuredType } from '../../odata/index.ts'
import { type MetadataLevel, readPreferences } from '../../v2/index.ts'
import { jsonMediaType, jsonReply, type Reply } from '../http/reply.ts'
import { contextRoot, type RoutedRequest, type ServiceRequest } from '../http/request.ts'
import type { Entity, Json } from '../json.ts'

/**
 * The service root and the metadata level of a reply. Compared with `minimal`, `full` only adds the type of each entity (OData JSON format
 * 3.1).
 */
interface Presentation {
  readonly root: string
  readonly level: MetadataLevel
}

/** Returns the requested metadata level. `$format` overrides `Accept` (OData protocol 8.2.1), even if `$format` names no level. */
export function levelOf(format: string | undefined, request: ServiceRequest): MetadataLevel {
  return readPreferences('', format ?? request.header('accept') ?? '').metadata
}

export function presentationOf({ format }: QueryOptions, request: RoutedRequest): Presentation {
  return { root: contextRoot(request), level: levelOf(format, request) }
}

/** Builds the reply with one page of a collection (OData JSON format 12). `context` is the text after `$metadata#`. */
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

/** Builds the reply with one entity or value. `context` is the text after `$metadata#`. */
export function entityReply(
  status: number,
  { root, level }: Presentation,
  context: string,
  entity: Record<string, Json>,
): Reply {
  const body = level === 'none' ? entity : { '@odata.context': `${root}/$metadata#${context}`, ...entity }
  return jsonReply(status, JSON.stringify(body), { 'Content-Type': jsonMediaType(level) })
}

/** Builds the reply with a raw value or a count (OData protocol 11.2.4.1, 11.2.10). */
export function plainText(text: string): Reply {
  return jsonReply(200, text, { 'Content-Type': 'text/plain' })
}

/** Formats the key of an entity as a path shows it, such as `(<guid>)`. A key with several parts is written with names. */
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
