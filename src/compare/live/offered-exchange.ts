import type { Partner } from '../../partners/partner.ts'
import type { WriteRequest } from '../../writes/index.ts'

/** A reply of V2 as its client got it. */
export interface OfferedReply {
  readonly status: number
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  /** Undefined: it was too large to be copied. */
  readonly body: Buffer | undefined
}

interface Offered {
  readonly partner: Partner
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** From the arrival of the request to the end of the reply. */
  readonly durationMs: number
  readonly reply: OfferedReply
}

/** A write that V2 served at `shadow`. */
export interface OfferedWrite extends Offered {
  readonly kind: 'write'
  readonly request: WriteRequest
  /** Decompressed; undefined: it is larger than allowed, or its encoding is not known. */
  readonly body: Buffer | undefined
}

/** A read that V2 served at `shadow`. */
export interface OfferedRead extends Offered {
  readonly kind: 'readFilter' | 'readKey' | 'registrations'
  /** Raw, without `?`. */
  readonly query: string
}

export type OfferedExchange = OfferedWrite | OfferedRead

/** The bytes that an exchange holds in memory. */
export function sizeOf(offered: OfferedExchange): number {
  const request = offered.kind === 'write' ? (offered.body?.length ?? 0) : offered.query.length
  return request + (offered.reply.body?.length ?? 0)
}
