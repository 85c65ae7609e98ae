import { Readable } from 'node:stream'

import * as z from 'zod'

import { AdapterError, errorRules } from '../errors.ts'
import { readBody } from '../http/body.ts'
import { runInSlices, type Slices } from '../http/slices.ts'
import type { KnownBatch, Settled, StoredBatch, StoredRecord } from '../journal/index.ts'
import type { Authorisation, Client } from '../partners/partner.ts'
import { MAX_RECORD_NODES, parseJson, ReplyFields } from '../upstream/index.ts'
import { decodeBatchReplyInSteps, type ReplyPart } from '../v2/index.ts'
import type { ReadOutcome, V3Record } from '../v3/index.ts'
import { checkToken, hasRow } from './check-token.ts'
import type { WriteContext } from './context.ts'
import type { Plan, PlannedRequest } from './plan.ts'
import { type Answered, type StoredReply, mayBeApplied, tallyOf } from './reply.ts'
import { markOf } from './settlement-policy.ts'

const headSchema = z.tuple([z.number(), z.string(), z.array(z.string())])

/** Encodes a reply for the journal: one line of JSON, then each byte of the body as one character. */
export function encodeStoredReply({ status, reason, fields, body }: StoredReply): string {
  return `${JSON.stringify([status, reason, fields])}\n${body.toString('latin1')}`
}

export function decodeStoredReply(text: string | undefined): StoredReply | undefined {
  if (text === undefined) return undefined
  const end = text.indexOf('\n')
  const [status, reason, fields] = headSchema.parse(JSON.parse(text.slice(0, end)))
  return { status, reason, fields, body: Buffer.from(text.slice(end + 1), 'latin1') }
}

function fieldOf({ fields }: Pick<StoredReply, 'fields'>, name: string): string | undefined {
  return new ReplyFields(fields).one(name)
}

/**
 * How a request to V2 ended. `answered`: the whole reply arrived; `body` is `undefined` if it is too large to store. `lost`: V2 may have
 * applied the request.
 */
export type RelayEnd =
  | {
      readonly kind: 'answered'
      readonly reply: Omit<StoredReply, 'body'> & { readonly body: Buffer | undefined }
    }
  | { readonly kind: 'notSent' }
  | { readonly kind: 'lost' }

type Outcome = Pick<Settled, 'state' | 'reason' | 'mark'>

/**
 * Returns the outcome that the journal stores for each record of a request to V2. `each` is the number of records that have their own reply
 * parts, or `undefined` if one stored record stands for the whole request. No record becomes due, because the adapter never repeats a
 * request to V2 by itself. If V2 accepted a batch, its reply is stored with the first record. The records of any other batch stay active
 * while the client may resend it, so that newer records of the same keys supersede them.
 */
export async function outcomesOf(
  end: RelayEnd,
  kind: 'batch' | 'record',
  each: number | undefined,
  reading: ReplyReading,
): Promise<Settled[]> {
  const outcomes = await readOutcomes(end, kind, each, reading)
  // A single record has no ids, so the journal never recognises its resend.
  const isRepeatable = kind === 'batch'
  const stored = isRepeatable && end.kind === 'answered' ? toStored(end.reply) : undefined
  return outcomes.map((outcome, position) => ({
    position,
    answer: position === 0 && stored !== undefined ? encodeStoredReply(stored) : undefined,
    retry: isRepeatable && stored === undefined && outcome.state !== 'confirmed' ? 'resend' : undefined,
    ...outcome,
  }))
}

/** Returns true for a record of a batch whose outcome implies that `outcomesOf` stored V2's reply to the batch. */
export function hasStoredReply({ state, reason }: Pick<StoredRecord | Settled, 'state' | 'reason'>): boolean {
  return state === 'confirmed' || reason === 'part' || reason === 'noParts'
}

export interface ReplyReading {
  readonly slices: Slices
  /**
   * Called with the number of bytes that reading the reply needs, perhaps several times. Throws if the memory budget has no room for them.
   */
  readonly onBytes?: ((count: number) => void) | undefined
}

/** Statuses that refuse a request without judging its record: credentials denied (401, 403), timeout (408), too many requests (429). */
const PASSING: ReadonlySet<number> = new Set([401, 403, 408, 429])
const isOfRecord = (status: number): boolean => status >= 400 && status < 500 && !PASSING.has(status)

/** Returns the status of each part of V2's reply, or `undefined` if the parts cannot be read. */
export async function statusesOfParts(
  reply: Pick<StoredReply, 'fields' | 'body'>,
  reading: ReplyReading,
): Promise<readonly number[] | undefined> {
  return (await readParts(reply, reading))?.map(({ status }) => status)
}

async function readParts(
  reply: Pick<StoredReply, 'fields' | 'body'>,
  { slices, onBytes = () => undefined }: ReplyReading,
): Promise<readonly ReplyPart[] | undefined> {
  const contentEncoding = fieldOf(reply, 'content-encoding')
  try {
    // The compression ratio is not limited, because a reply with many equal refusals compresses very well.
    const bounds = { maxBytes: MAX_INFLATED_BYTES, maxInflation: Infinity }
    const options = { ...bounds, contentEncoding, onBytes, slices }
    const isPlain = contentEncoding === undefined
    const body = isPlain ? reply.body : await readBody(Readable.from([reply.body]), options)
    const steps = decodeBatchReplyInSteps(body, fieldOf(reply, 'content-type'))
    return (await runInSlices(steps, slices)).parts
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

/** Maximum size of a decompressed reply in bytes. A larger reply is forwarded, but its outcomes are not read. */
const MAX_INFLATED_BYTES = 33_554_432

const markSchema = z.object({ ExternalID: z.string(), RecordedOn: z.string().nullish() })

function readMark(body: string | undefined): Settled['mark'] {
  const record = markSchema.safeParse(parseJson(body ?? '', MAX_RECORD_NODES))
  return record.success ? markOf(record.data) : undefined
}

/** Maximum size in bytes of a body that is searched for a mark. */
const MAX_RECORD_BYTES = 1_048_576

const textOf = (body: Buffer | undefined): string | undefined =>
  body === undefined || body.length > MAX_RECORD_BYTES ? undefined : body.toString('utf8')

const isSuccess = (status: number): boolean => status >= 200 && status < 300

function toStored(reply: Extract<RelayEnd, { kind: 'answered' }>['reply']): StoredReply | undefined {
  const { body } = reply
  return isSuccess(reply.status) && body !== undefined ? { ...reply, body } : undefined
}

async function readOutcomes(
  end: RelayEnd,
  kind: 'batch' | 'record',
  each: number | undefined,
  reading: ReplyReading,
): Promise<readonly Outcome[]> {
  const all = (outcome: Outcome): Outcome[] => Array.from({ length: each ?? 1 }, () => outcome)
  if (end.kind === 'notSent') return all({ state: 'notApplied', reason: 'notSent' })
  if (end.kind === 'lost') return all({ state: 'unknown', reason: 'connectionLost' })
  const whole = toOutcome(end.reply.status)
  // V2 applied nothing of a refused batch and judged none of its records, so they may be resent. Only a single record is itself refused.
  const isVerdict = kind === 'record' && isOfRecord(end.reply.status)
  if (whole.state === 'refused' && !isVerdict) return all({ ...whole, state: 'notApplied' })
  if (whole.state !== 'confirmed') return all(whole)
  if (kind === 'record') return all({ ...whole, mark: readMark(textOf(end.reply.body)) })
  const stored = toStored(end.reply)
  if (stored === undefined) return all({ state: 'unknown', reason: 'replyTooLarge' })
  if (each === undefined) return all(whole)
  // A reply without one part for each record, such as the single 200 of batch-wire 3, does not show which records V2 applied.
  const parts = await readParts(stored, reading)
  if (parts?.length !== each) return all({ state: 'unknown', reason: 'noParts' })
  const outcomes: Outcome[] = []
  for (const { status, body } of parts) {
    const { state } = toOutcome(status)
    outcomes.push(state === 'confirmed' ? { state, mark: readMark(body) } : { state, reason: 'part' })
    if (reading.slices.spend(body.length)) await reading.slices.next()
  }
  return outcomes
}

function toOutcome(status: number): Outcome {
  if (isSuccess(status)) return { state: 'confirmed' }
  return { state: status >= 400 && status < 500 ? 'refused' : 'unknown', reason: `HTTP_${status}` }
}

/** The state of a batch that was sent to V2 and for which no stored reply can be returned, so that V3 serves the batch now. */
export interface SentToV2 {
  /** The journal's number for the newest copy of the batch that was begun for V2. */
  readonly batch: number
  /**
   * The time of receipt of the first request that V2 may have applied, in milliseconds since the epoch. If V2 applied none, the time of the
   * last request. `undefined` if the journal no longer stores the request.
   */
  readonly receivedMs: number | undefined
  /** The state of each record: `unknown` if V2 may have applied the record. */
  readonly records: readonly Pick<StoredRecord, 'state' | 'superseded'>[]
}

/**
 * Waits until requests that send this batch to V2 have ended on all instances, then returns V2's last stored reply. Returns the state of
 * the batch if no reply is stored, or if a later request may have outdated the reply. Throws `ADP_OUTCOME_UNKNOWN` if the requests take
 * longer than the budget, `ADP_RESULT_LOST` if the stored reply was erased, and the errors of `checkToken` and of the journal.
 */
export async function replayRelayed(
  context: WriteContext,
  authorisation: Authorisation,
  { plan, slices }: Pick<PlannedRequest, 'plan' | 'slices'>,
  { batch, earlier = [], isCut = false }: Pick<KnownBatch, 'batch' | 'earlier' | 'isCut'>,
): Promise<Answered | SentToV2> {
  const deadlineMs = context.clock.nowMs() + authorisation.partner.budgetMs
  const unanswered: (StoredBatch | undefined)[] = []
  // Loads one reply at a time, because a reply may be several megabytes long.
  for (const number of [batch, ...earlier]) {
    const stored = await loadEnded(context, number, deadlineMs, 'ADP_OUTCOME_UNKNOWN')
    if (stored === undefined || !stored.records.some(hasStoredReply)) {
      unanswered.push(stored)
      continue
    }
    const found = await readStored(stored, plan, { slices })
    // This reply is outdated if it refuses a part of the batch, because V2 may have accepted that part in a later request.
    if (unanswered.some(mayBeAppliedByV2) && found?.isAcceptedWhole !== true)
      return toSent(batch, unanswered, plan, false)
    // The stored reply was erased. The journal stopped tracking newer records of the batch's keys when it stored the reply, so no read can
    // tell which mark must stay.
    if (found === undefined) throw resultLost()
    await checkToken(context, authorisation, found.stored, plan)
    return toAnswered(found)
  }
  return toSent(batch, unanswered, plan, isCut)
}

export type ReadMarkOfV2 = (record: V3Record, timeoutMs: number) => Promise<ReadOutcome>

interface ResentBatch {
  readonly client: Client
  readonly plan: Plan
  /** The numbers under which the batch was sent to V2 before, newest first. */
  readonly batches: readonly number[]
  readonly readMark: ReadMarkOfV2
  readonly reading: ReplyReading
}

const SHOWN_WITHIN_MS = 5_000

/**
 * Answers a resent batch with V2's stored reply while V2 serves, if the reply is final and this client may have it. Waits until requests
 * with the same batch have ended on all instances. Returns `undefined` if the batch must be sent to V2 again, or if the journal cannot be
 * read. Throws `ADP_V2_OUTCOME_UNKNOWN` if an earlier request takes longer than the budget, or if V2 does not confirm in time whether this
 * client may have the reply.
 */
export async function replayOnV2(context: WriteContext, resent: ResentBatch): Promise<Answered | undefined> {
  const { client, plan, batches, reading } = resent
  const deadlineMs = context.clock.nowMs() + client.partner.budgetMs
  try {
    for (const batch of batches) {
      const stored = await loadEnded(context, batch, deadlineMs, 'ADP_V2_OUTCOME_UNKNOWN')
      const found = stored && (await readStored(stored, plan, reading))
      if (found?.isFinal !== true) continue
      return (await mayReadReply(context, resent, found.stored, deadlineMs)) ? toAnswered(found) : undefined
    }
  } catch (cause) {
    if (!(cause instanceof AdapterError) || errorRules[cause.code].class !== 'internal') throw cause
  }
  return undefined
}

/**
 * Returns true if V2 accepted the credentials for the batch before, or if a read with them now shows a mark of the batch. Repeats stale or
 * broken reads.
 */
async function mayReadReply(
  { verdicts, clock }: WriteContext,
  { client, plan, readMark }: ResentBatch,
  { batch, records }: StoredBatch,
  deadlineMs: number,
): Promise<boolean> {
  if (verdicts.isAccepted(batch, client.identity)) return true
  const accepted = records.find(
    ({ state, position }) => state === 'confirmed' && plan.records[position]?.record !== undefined,
  )
  const record = accepted && plan.records[accepted.position]?.record
  if (record === undefined) return false
  let wasRead = false
  for (const pauseMs of [0, ...client.partner.readBackAfterMs]) {
    if (deadlineMs - clock.nowMs() <= pauseMs) break
    if (pauseMs > 0) await new Promise<void>((resolve) => void clock.after(pauseMs, resolve))
    const outcome = await readMark(record, Math.min(SHOWN_WITHIN_MS, deadlineMs - clock.nowMs()))
    if (outcome.kind === 'refused') return false
    wasRead ||= outcome.kind === 'read'
    if (outcome.kind !== 'read' || !hasRow(outcome.json, record)) continue
    verdicts.accept(batch, client.identity)
    return true
  }
  if (wasRead) return false
  throw new AdapterError(
    'ADP_V2_OUTCOME_UNKNOWN',
    'V2 answered this batch before but could not confirm that these credentials may receive the reply. This copy was not sent. Resend the same batch later to get the result.',
  )
}

interface FoundReply {
  readonly reply: StoredReply
  /** The batch, with the state of each record as the reply states it. If the parts cannot be read, all records count as accepted. */
  readonly stored: StoredBatch
  readonly isAcceptedWhole: boolean
  /**
   * True if no record needs to be resent: each record was accepted or refused for its content, or one answer covers all records (batch-wire
   * 3).
   */
  readonly isFinal: boolean
}

/** Reads the stored reply of a batch. Returns `undefined` if the batch has no reply, or if the reply is no longer stored. */
async function readStored(
  stored: StoredBatch,
  { records }: Plan,
  reading: ReplyReading,
): Promise<FoundReply | undefined> {
  const reply = decodeStoredReply(stored.records[0]?.answer)
  if (reply === undefined) return undefined
  const statuses = await statusesOfParts(reply, reading)
  const each = statuses?.length === records.length ? statuses : undefined
  const asParts = records.map((_, position): StoredRecord => {
    const { state } = toOutcome(each?.[position] ?? 200)
    const rest = { answer: undefined, reason: undefined, retry: undefined, superseded: false, attempts: 1 }
    return { position, state, ...rest }
  })
  return {
    reply,
    stored: { ...stored, records: asParts },
    isAcceptedWhole: each?.every(isSuccess) === true,
    isFinal:
      statuses === undefined
        ? !/^\s*multipart\//i.test(fieldOf(reply, 'content-type') ?? '')
        : each?.every((status) => isSuccess(status) || isOfRecord(status)) === true,
  }
}

const toAnswered = ({ stored, reply }: FoundReply): Answered => ({
  tally: tallyOf(stored),
  queuedMs: 0,
  replayed: true,
  askedV3: false,
  batch: stored.batch,
  storedReply: reply,
})

const mayBeAppliedByV2 = (stored: StoredBatch | undefined): boolean =>
  stored?.records.some(({ state }) => state !== 'refused' && state !== 'notApplied') !== false

/**
 * Combines all `requests` that sent a batch to V2 and have no usable reply, newest first, into one state. `isCut` is true if there were
 * older requests about which nothing is known.
 */
function toSent(
  batch: number,
  requests: readonly (StoredBatch | undefined)[],
  { records: planned }: Plan,
  isCut: boolean,
): SentToV2 {
  const left = requests.filter(mayBeAppliedByV2)
  const times = (isCut ? requests : left.length > 0 ? left : requests.slice(0, 1)).flatMap(
    (stored) => stored?.receivedMs ?? [],
  )
  const lastOf = new Map(
    planned.flatMap(({ key, faults }, position) => (faults === undefined ? [[key, position]] : [])),
  )
  const records = planned.map(({ key }, position) => {
    const each = requests.map((stored) => recordIn(stored, position, planned.length))
    const sent = each.find(mayBeApplied)
    // The record is superseded if a newer mark superseded it in the last request, or in the newest request that V2 may have applied. The
    // last request counts in any case, because the journal may not have stored the keys of the other requests.
    const isSuperseded = [sent, each[0]].some((record) => record?.superseded === true)
    const state = isCut || sent !== undefined ? 'unknown' : 'notApplied'
    // All records were sent to V2 at once. If several records have the same key, V2 shows only the mark of the last record. The earlier
    // records count as superseded, because no read can find their marks.
    const isHidden = state === 'unknown' && lastOf.get(key) !== position
    return { state, superseded: isSuperseded || isHidden } as const
  })
  return { batch, receivedMs: times.length === 0 ? undefined : Math.min(...times), records }
}

/**
 * Returns the state of one record of a request to V2. The journal may have stored a single record that stands for all records. The state is
 * `unknown` if the request is not stored.
 */
function recordIn(
  stored: StoredBatch | undefined,
  position: number,
  count: number,
): Pick<StoredRecord, 'state' | 'superseded'> {
  const isEach = stored?.records.length === count
  const record = stored?.records[isEach ? position : 0]
  return { state: record?.state ?? 'unknown', superseded: isEach && record?.superseded === true }
}

export const resultLost = (): AdapterError =>
  new AdapterError(
    'ADP_RESULT_LOST',
    'This batch was received before, and its result is no longer stored. It may have been applied. Check its records in the service.',
  )

/** Loads a batch that was sent to V2, once its request has ended. Throws `code` if the request does not end before the deadline. */
async function loadEnded(
  { journal, predecessors, clock }: WriteContext,
  batch: number,
  deadlineMs: number,
  code: 'ADP_OUTCOME_UNKNOWN' | 'ADP_V2_OUTCOME_UNKNOWN',
): Promise<StoredBatch | undefined> {
  const stored = await journal.load(batch)
  const open = stored?.records.filter(({ state }) => state === 'open') ?? []
  if (open.length === 0) return stored
  const refs = open.map(({ position }) => ({ batch, position }))
  if (await predecessors.until(refs, deadlineMs - clock.nowMs())) return journal.load(batch)
  throw new AdapterError(
    code,
    'An earlier copy of this batch is still in progress. This copy was not sent. Resend the same batch later to get the result.',
  )
}
