/** Kinds of requests that are recorded. */
export const recordedKinds = ['batch', 'record', 'readFilter', 'readKey', 'registrations'] as const
export type RecordedKind = (typeof recordedKinds)[number]

/** A request of a V2 client and the reply of V2 to it. */
export interface Exchange {
  readonly kind: RecordedKind
  readonly method: string
  /** From the route of V2 on, with the query: `/V2/Attendance/$batch`. What stands before names an installation. */
  readonly target: string
  readonly contentType: string | undefined
  readonly accept: string | undefined
  readonly prefer: string | undefined
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
  /** ISO 8601; shifted with the dates of a pseudonymised recording. */
  readonly receivedAt: string
  readonly durationMs: number
  readonly pseudonyms: boolean
}

/** The header of a message, the first of its name. */
export function headerOf(headers: RecordedReply['headers'], name: string): string | undefined {
  return headers.find(([own]) => own.toLowerCase() === name)?.[1]
}
