import type { Side } from '../../rollout/index.ts'
import { isGenericClient } from '../../v2/index.ts'

/** Kinds of requests that are recorded. */
export const recordedKinds = ['batch', 'record', 'readFilter', 'readKey', 'registrations'] as const
export type RecordedKind = (typeof recordedKinds)[number]

/** No host of an installation is recorded. */
export const RECORDED_HOST = 'recorded.invalid'

/** A request of a V2 client and the reply to it. */
export interface Exchange {
  readonly kind: RecordedKind
  /** The side that served it; a reply for which V3 served was built by the adapter. */
  readonly served: Side
  readonly method: string
  /** From the route of V2 on, with the query: `/V2/Attendance/$batch`. What stands before names an installation. */
  readonly target: string
  readonly contentType: string | undefined
  readonly accept: string | undefined
  readonly prefer: string | undefined
  /** `OData-Version` and `OData-MaxVersion`, where they are versions. */
  readonly odataVersion: string | undefined
  readonly odataMaxVersion: string | undefined
  /** Decompressed; empty for a read. */
  readonly body: Buffer
  readonly reply: RecordedReply
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** From the arrival of the request to the end of the reply. */
  readonly durationMs: number
}

/** A reply as it is recorded. */
export interface RecordedReply {
  readonly status: number
  readonly reason: string
  /** Name and value, without those that are not on the list of kept headers. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Decompressed. */
  readonly body: Buffer
}

/** What of an exchange its recording may hold; `true` values are those of `pseudonyms`. */
export interface RecordingNote {
  /** Version of this form. */
  readonly recording: 1
  readonly kind: RecordedKind
  /** Missing: `v2`. */
  readonly served?: Side | undefined
  /** ISO 8601; shifted with the dates of a pseudonymised recording. */
  readonly receivedAt: string
  readonly durationMs: number
  readonly pseudonyms: boolean
}

/** True for a client that `layout: auto` answers in the nested layout. */
export function isGeneric({ accept, odataVersion, odataMaxVersion }: Exchange): boolean {
  return isGenericClient({ accept, 'odata-version': odataVersion, 'odata-maxversion': odataMaxVersion })
}

/** A version as OData writes it; any other value may hold something else. */
export const versionOf = (value: string | undefined): string | undefined =>
  value !== undefined && /^\d\.\d{1,2}$/.test(value) ? value : undefined

/** The header of a message, the first of its name. */
export function headerOf(headers: RecordedReply['headers'], name: string): string | undefined {
  return headers.find(([own]) => own.toLowerCase() === name)?.[1]
}
