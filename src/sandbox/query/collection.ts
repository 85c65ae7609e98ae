import { jsonMediaType, jsonReply } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import type { Presentation } from './presentation.ts'

/** A collection answer before it is written. */
export interface CollectionReply {
  readonly presentation: Presentation
  /** What `$metadata#` is followed by. */
  readonly context: string
  readonly rows: readonly Json[]
  readonly count?: number | undefined
  readonly next?: string | undefined
}

/** Writes a collection: context, count where asked for, rows, link to the next page (OData JSON format 12). */
export function collectionReply({ presentation, context, rows, count, next }: CollectionReply): Reply {
  const { root, level } = presentation
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
