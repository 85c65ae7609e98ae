import { jsonReply } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Json } from '../seed/documents/field-rules.ts'

/** A collection answer before it is written. */
export interface CollectionReply {
  /** URL of the service root. */
  readonly root: string
  /** What `$metadata#` is followed by. */
  readonly context: string
  readonly rows: readonly Record<string, Json>[]
  readonly count?: number | undefined
  readonly next?: string | undefined
}

/** Writes a collection: context, count where asked for, rows, link to the next page (OData JSON format 12). */
export function collectionReply({ root, context, rows, count, next }: CollectionReply): Reply {
  const body = {
    '@odata.context': `${root}/$metadata#${context}`,
    ...(count === undefined ? {} : { '@odata.count': count }),
    value: rows,
    ...(next === undefined ? {} : { '@odata.nextLink': next }),
  }
  return jsonReply(200, JSON.stringify(body))
}

/** Writes one entity of a set. */
export function entityReply(
  status: number,
  root: string,
  context: string,
  entity: Record<string, Json>,
): Reply {
  return jsonReply(
    status,
    JSON.stringify({ '@odata.context': `${root}/$metadata#${context}/$entity`, ...entity }),
  )
}
