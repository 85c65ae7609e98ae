import type { Clock } from '../clock.ts'
import type { ReadPlanner } from '../translate/index.ts'
import type { MetadataLevel } from '../v2/index.ts'
import type { V3Reader } from '../v3/index.ts'
import type { UnmarkedCodes } from './unmarked-codes.ts'

export interface ReadContext {
  readonly planner: ReadPlanner
  readonly reader: V3Reader
  readonly codes: UnmarkedCodes
  readonly clock: Clock
  /** The secret with which next links are signed. All instances of an adapter have the same secret. */
  readonly linkSecret: Uint8Array
}

export interface ReadRequest {
  readonly path: string
  /** The raw query, without `?`. */
  readonly query: string
  /** The absolute address without the query. Its path has the client's spelling, because its prefix may identify the partner. */
  readonly address: string
  /** The address for next links. The address leads back to V3, even if V2 serves the partner when the client follows the link. */
  readonly nextAddress: string
  /** The values of the headers `Accept` and `Prefer`. A header that was not sent is an empty string. */
  readonly accept: string
  readonly prefer: string
}

export interface ReadAnswer {
  readonly body: readonly string[]
  /** The media type of the body, or `undefined` for a 204 without a body. */
  readonly contentType: string | undefined
  readonly rows: number
}

export function jsonType(metadata: MetadataLevel): string {
  return `application/json; odata.metadata=${metadata}`
}

export function withContext(entity: string, url: string | undefined): string {
  if (url === undefined) return entity
  const rest = entity.slice(1)
  return `{"@odata.context":${JSON.stringify(url)}${rest === '}' ? '' : ','}${rest}`
}
