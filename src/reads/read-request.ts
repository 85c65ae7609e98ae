import type { Clock } from '../clock.ts'
import type { ReadPlanner } from '../translate/index.ts'
import type { MetadataLevel } from '../v2/index.ts'
import type { V3Reader } from '../v3/index.ts'
import type { UnmarkedCodes } from './unmarked-codes.ts'

/** The parts that the read engine works with; created once by the composition root. */
export interface ReadContext {
  readonly planner: ReadPlanner
  readonly reader: V3Reader
  readonly codes: UnmarkedCodes
  /** Counts budgets of time. */
  readonly clock: Clock
  /** Signs next links; the same in all instances of an adapter. */
  readonly linkSecret: Uint8Array
}

/** A V2 read as its client wrote it. */
export interface ReadRequest {
  /** The decoded path. */
  readonly path: string
  /** The raw query, without `?`. */
  readonly query: string
  /** The absolute address without the query, under the path as the client wrote it: the partner may be found by its prefix. */
  readonly address: string
  /** The same for next links: they lead back to V3 whatever the stage is then. */
  readonly nextAddress: string
  /** The values of these headers; empty: not sent. */
  readonly accept: string
  readonly prefer: string
}

/** The answer to a read. */
export interface ReadAnswer {
  /** The pieces of the body, in order. */
  readonly body: readonly string[]
  /** Undefined: 204 without content. */
  readonly contentType: string | undefined
  /** Recorded marks in it. */
  readonly rows: number
}

/** The media type of JSON with annotations of this level. */
export function jsonType(metadata: MetadataLevel): string {
  return `application/json; odata.metadata=${metadata}`
}

/** Adds the context to the JSON of an entity or value. */
export function withContext(entity: string, url: string | undefined): string {
  if (url === undefined) return entity
  const rest = entity.slice(1)
  return `{"@odata.context":${JSON.stringify(url)}${rest === '}' ? '' : ','}${rest}`
}
