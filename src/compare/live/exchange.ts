import { createHash } from 'node:crypto'

import type { Client } from '../../partners/partner.ts'
import type { Side, Stage } from '../../rollout/stage.ts'
import type { PartReply } from '../../v2/index.ts'
import type { V3Record } from '../../v3/record.ts'
import type { RecordTrait } from '../diff/compare-mark.ts'
import type { Comparison, Verdict } from '../verdict.ts'
import {
  decodeBody,
  encodingOf,
  type ExchangeKind,
  type WireExchange,
  type WireReply,
  type WireWrite,
} from '../wire-exchange.ts'

/**
 * `reply` compares the reply of V2 to a write with the reply that the adapter would have built from the marks that V3 stores for the write.
 * `readBack` reads from V2 the marks that V3 accepted. `answers` compares the answers of V2 and V3 to one read.
 */
export type CheckKind = 'reply' | 'readBack' | 'answers'

/** The result for a record. `unchecked`: V2 refused the record, and only a POST would show whether V3 refuses it too. */
export interface LiveResult extends Omit<Comparison, 'verdict'> {
  readonly verdict: Verdict | 'unchecked'
}

/** A record with its result. The ids are hashed before they are stored, and never logged. */
export interface ComparedRecord extends LiveResult {
  readonly learner: string | undefined
  readonly day: string | undefined
  readonly code: string | undefined
  readonly codeClass: 'code:present' | 'code:absent' | 'code:neither' | undefined
  readonly traits: readonly RecordTrait[]
}

export interface ExchangeHead {
  readonly partner: string
  readonly stage: Stage
  readonly revision: number
  readonly served: Side
  /** The school of the exchange, or its client if the request names no school. At `canary`, one side serves all requests of a unit. */
  readonly unit: string
  readonly kind: ExchangeKind
  readonly receivedMs: number
}

export interface ComparedExchange extends ExchangeHead {
  readonly check: CheckKind
  /** A hash that a request and its resends share, so that their counts are added once. If `undefined`, every exchange is counted. */
  readonly fingerprint?: string | undefined
  /** Empty if the exchange was sampled but could not be compared. */
  readonly records: readonly ComparedRecord[]
  /** The milliseconds from the reply until the other side showed each mark, for the checks `reply` and `readBack`. */
  readonly delaysMs: readonly number[]
}

/** Receives a compared exchange. Never throws and never waits. */
export type OnCompared = (exchange: ComparedExchange) => void

interface Offered extends Omit<ExchangeHead, 'partner'>, Pick<WireExchange, 'target' | 'durationMs'> {
  readonly client: Client
}

/** A write that V2 served at `shadow`. */
export interface OfferedWrite extends Offered, WireWrite {
  readonly kind: WireWrite['kind']
  readonly served: 'v2'
  readonly keys: readonly (string | undefined)[]
}

export interface ServedRecord {
  readonly record: V3Record
  readonly key: string
  readonly part: PartReply
}

/** A write that V3 served at `canary` or `v3`. */
export interface OfferedServedWrite extends Offered {
  readonly kind: WireWrite['kind']
  readonly served: 'v3'
  readonly records: readonly ServedRecord[]
}

export interface OfferedRead extends Offered {
  readonly kind: 'readFilter' | 'readKey' | 'registrations'
  readonly served: Side
  /** The request with the header fields of `keptFieldsOf` and without a body. */
  readonly request: WireExchange['request']
  /** `undefined` if V3's reply was streamed. The comparison then repeats the read. */
  readonly reply: WireReply | undefined
}

export type OfferedExchange = OfferedWrite | OfferedServedWrite | OfferedRead

export function headOf({
  client,
  stage,
  revision,
  served,
  unit,
  kind,
  receivedMs,
}: OfferedExchange): ExchangeHead {
  return { partner: client.partner.id, stage, revision, served, unit, kind, receivedMs }
}

const RECORD_BYTES = 1_000

const MAX_PLAIN_BYTES = 1_048_576
/** The maximum ratio of decompressed to compressed size. Marks in JSON usually compress by a factor of 10 to 20. */
const MAX_RATIO = 64

/** The size in bytes of the checksum and the length at the end of a gzip member (RFC 1952 2.3). */
const GZIP_TRAILER = 8

/** Returns the approximate memory of an exchange in bytes, including the decompressed reply. */
export function sizeOf(offered: OfferedExchange): number {
  if ('records' in offered)
    return offered.records.reduce((sum, { part }) => sum + RECORD_BYTES + (part.json?.length ?? 0), 0)
  const { reply } = offered
  const request = offered.target.length + (offered.request.body?.length ?? 0)
  if (reply === undefined) return request
  const expanded = encodingOf(reply) === undefined ? 0 : plainBytesOf(reply)
  return request + (reply.body?.length ?? 0) + expanded
}

/** Returns the maximum size of the decompressed reply in bytes. The last four bytes of a gzip body state this size. */
function plainBytesOf(reply: WireReply): number {
  const { body = Buffer.alloc(0) } = reply
  const most = Math.min(MAX_PLAIN_BYTES, MAX_RATIO * body.length)
  const saysLength = encodingOf(reply)?.endsWith('gzip') === true && body.length > GZIP_TRAILER
  return saysLength ? Math.min(most, body.readUInt32LE(body.length - 4)) : most
}

/** Decodes the body of a reply up to the size that `sizeOf` reserved for it, or returns the reason why the body cannot be read. */
export const plainBody = (reply: WireReply): Promise<Buffer | 'tooLarge' | 'encoding'> =>
  decodeBody(reply, plainBytesOf(reply))

/** Returns a hash that a write and its resends share, or `undefined` for reads and for writes whose body was not stored. */
export function fingerprintOf(exchange: OfferedExchange): string | undefined {
  if (!('keys' in exchange) && !('records' in exchange)) return undefined
  const hash = createHash('sha256').update(`${exchange.unit}\n`)
  if ('records' in exchange) {
    for (const { key, record } of exchange.records) {
      const { AttendanceCode, Qualifier, Present, Absent } = record
      hash.update(JSON.stringify([key, AttendanceCode.ExternalID, Qualifier, Present, Absent]))
    }
  } else {
    if (exchange.request.body === undefined) return undefined
    hash.update(exchange.request.body)
  }
  return hash.digest('base64url')
}

export type SkipReason =
  /** A body is larger than the limit of comparisons. */
  | 'tooLarge'
  /** The encoding of a body is unknown, or the bytes do not match it. */
  | 'encoding'
  /** The request (such as a read of `$count`) or an answer has a form that is not compared. */
  | 'form'
  | 'refused'
  | 'empty'
  /** Newer marks of the same learners and events replaced all marks of the write. */
  | 'superseded'
  /** The request follows a next link, which only the side that created the link can serve. */
  | 'nextLink'
  /** The answer continues in a next link. Its first page may have other rows than the first page of the other side. */
  | 'paged'
  /** The request uses `$top` or `$skip` but specifies no order, so V2 and V3 may return different rows. */
  | 'unordered'
  /** `$select` omits the members that identify a record. */
  | 'noKey'
  /** The service answered 429 in the last five minutes. */
  | 'silence'
  | 'pace'
  | 'stopped'
  /** The comparison itself failed. The log has the error. */
  | 'failed'

export type CheckResult =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | {
      readonly kind: 'compared'
      readonly records: readonly ComparedRecord[]
      /** The milliseconds from the reply until the other side showed each mark, or `undefined` if the check reads no marks. */
      readonly delaysMs?: readonly number[]
    }
