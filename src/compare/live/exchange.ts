import { createHash } from 'node:crypto'

import type { Client } from '../../partners/partner.ts'
import type { Side, Stage } from '../../rollout/stage.ts'
import type { PartReply } from '../../v2/index.ts'
import type { V3Record } from '../../v3/record.ts'
import type { RecordTrait } from '../diff/compare-mark.ts'
import type { Comparison } from '../verdict.ts'
import {
  decodeBody,
  encodingOf,
  type ExchangeKind,
  type WireExchange,
  type WireReply,
  type WireWrite,
} from '../wire-exchange.ts'

/**
 * What was compared. `reply`: the reply that the adapter would have built against that of V2. `visible`: V3 was read for what V2 accepted.
 * `readBack`: V2 was read for what V3 accepted. `answers`: answer to a read against answer.
 */
export type CheckKind = 'reply' | 'visible' | 'readBack' | 'answers'

/** One compared record of a live exchange. It holds ids: it is hashed before it is kept, and never logged. */
export interface ComparedRecord extends Comparison {
  readonly learner: string | undefined
  /** Of the session, `YYYY-MM-DD`; undefined: not known. */
  readonly day: string | undefined
  /** Id or letter of the attendance code. */
  readonly code: string | undefined
  readonly codeClass: 'code:present' | 'code:absent' | 'code:neither' | undefined
  readonly traits: readonly RecordTrait[]
  /** Codes of the errors that V2 answered with, such as `ATT_VAL_2`. */
  readonly errorCodes: readonly string[]
}

/** What of a live exchange is kept beside its bodies. */
export interface ExchangeHead {
  readonly partner: string
  readonly stage: Stage
  readonly revision: number
  /** The side that served the client. */
  readonly served: Side
  /** The school, as the unit of `canary`. */
  readonly unit: string
  readonly kind: ExchangeKind
  readonly receivedMs: number
}

/** A live exchange that was compared. */
export interface ComparedExchange extends ExchangeHead {
  readonly check: CheckKind
  /** Equal for a request that was sent again, such as its digest; its counts count once. Undefined: it counts each time. */
  readonly fingerprint?: string | undefined
  /** Empty: the exchange was sampled and was not compared: it was dropped, skipped, or could not be. */
  readonly records: readonly ComparedRecord[]
  /** `visible` and `readBack`: how long after the reply the marks were found, one for each record that was. */
  readonly delaysMs: readonly number[]
}

/** Takes what was compared; never throws and never waits. */
export type OnCompared = (exchange: ComparedExchange) => void

interface Offered extends Omit<ExchangeHead, 'partner'>, Pick<WireExchange, 'target' | 'durationMs'> {
  readonly client: Client
}

/** A write that V2 served at `shadow`. */
export interface OfferedWrite extends Offered, WireWrite {
  readonly kind: WireWrite['kind']
  readonly served: 'v2'
  /** Keys of its records, as far as they are known. */
  readonly keys: readonly (string | undefined)[]
}

/** A record that V3 served, with the part that its client got. */
export interface ServedRecord {
  readonly record: V3Record
  readonly key: string
  readonly part: PartReply
}

/** A write that V3 served at `canary` or `v3`. */
export interface OfferedServedWrite extends Offered {
  readonly kind: WireWrite['kind']
  readonly served: 'v3'
  /** Those that V3 accepted. */
  readonly records: readonly ServedRecord[]
}

/** A read, with the reply of the side that served it. */
export interface OfferedRead extends Offered {
  readonly kind: 'readFilter' | 'readKey' | 'registrations'
  readonly served: Side
  /** With the fields of `keptFieldsOf`, and no body. */
  readonly request: WireExchange['request']
  /** Undefined: V3's reply was streamed, and is asked for again. */
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

/** About what a part holds besides its text. */
const RECORD_BYTES = 1_000

/** A longer reply is read by its client alone. */
const MAX_PLAIN_BYTES = 1_048_576
/** Marks in JSON are compressed to a tenth or a twentieth. */
const MAX_RATIO = 64

/** CRC and length of a gzip member (RFC 1952 2.3). */
const GZIP_TRAILER = 8

/** The bytes that an exchange holds in memory, and those that it takes to read its reply. */
export function sizeOf(offered: OfferedExchange): number {
  if ('records' in offered)
    return offered.records.reduce((sum, { part }) => sum + RECORD_BYTES + (part.json?.length ?? 0), 0)
  const { reply } = offered
  const request = offered.target.length + (offered.request.body?.length ?? 0)
  if (reply === undefined) return request
  const expanded = encodingOf(reply) === undefined ? 0 : plainBytesOf(reply)
  return request + (reply.body?.length ?? 0) + expanded
}

/** The most bytes that the body of a reply is expanded to; gzip says how many it has. */
function plainBytesOf(reply: WireReply): number {
  const { body = Buffer.alloc(0) } = reply
  const most = Math.min(MAX_PLAIN_BYTES, MAX_RATIO * body.length)
  const saysLength = encodingOf(reply)?.endsWith('gzip') === true && body.length > GZIP_TRAILER
  return saysLength ? Math.min(most, body.readUInt32LE(body.length - 4)) : most
}

/** The body of a reply without its encoding, with as many bytes as `sizeOf` counts for it at most; or why it cannot be read. */
export const plainBody = (reply: WireReply): Promise<Buffer | 'tooLarge' | 'encoding'> =>
  decodeBody(reply, plainBytesOf(reply))

/** Equal for a write of one school that is sent again; undefined for reads, whose answers are new each time, and for bodies that were not kept. */
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

/** Why an exchange was not compared. */
export type SkipReason =
  /** A body is larger than comparisons read. */
  | 'tooLarge'
  /** The encoding of a body is not known, or its bytes are not of it. */
  | 'encoding'
  /** An answer has none of the forms that the interface gives. */
  | 'form'
  /** The request was refused as a whole. */
  | 'refused'
  /** It has no record to compare. */
  | 'empty'
  /** A newer mark of each of its learners and events came meanwhile. */
  | 'superseded'
  /** A page that only the side which gave its link can continue. */
  | 'nextLink'
  /** The answer goes on in a next link: the first pages of two orders have other rows. */
  | 'paged'
  /** The first rows of an order that was not asked for. */
  | 'unordered'
  /** `$select` has no member by which rows of both sides are aligned. */
  | 'noKey'
  /** The side has answered 429 within five minutes. */
  | 'silence'
  /** No call was free in time. */
  | 'pace'
  /** The adapter stopped. */
  | 'stopped'
  /** An error of the comparison itself; the log has it. */
  | 'failed'

/** The end of a check, whose sides could be asked. */
export type CheckResult =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | {
      readonly kind: 'compared'
      readonly records: readonly ComparedRecord[]
      /** How long after the reply the marks were found; undefined: no marks were looked for. */
      readonly delaysMs?: readonly number[]
    }
