import { Readable } from 'node:stream'

import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import { readBody } from '../http/body.ts'
import { runInSlices, type Slices } from '../http/slices.ts'
import type { Settled, StoredRecord } from '../journal/index.ts'
import { decodeBatchReplyInSteps, type ReplyPart } from '../v2/index.ts'
import type { KeptReply } from './reply.ts'
import { markOf } from './settlement-policy.ts'

const headSchema = z.tuple([z.number(), z.string(), z.array(z.string())])

/** Text for the journal: one line of JSON, then the bytes of the body, each as one character. */
export function encodeKeptReply({ status, reason, fields, body }: KeptReply): string {
  return `${JSON.stringify([status, reason, fields])}\n${body.toString('latin1')}`
}

/** The inverse of `encodeKeptReply`; undefined for no text. */
export function decodeKeptReply(text: string | undefined): KeptReply | undefined {
  if (text === undefined) return undefined
  const end = text.indexOf('\n')
  const [status, reason, fields] = headSchema.parse(JSON.parse(text.slice(0, end)))
  return { status, reason, fields, body: Buffer.from(text.slice(end + 1), 'latin1') }
}

/** The value of a field; undefined: there is none. */
function fieldOf({ fields }: Pick<KeptReply, 'fields'>, name: string): string | undefined {
  const at = fields.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name)
  return at < 0 ? undefined : fields[at + 1]
}

/** How a request to V2 ended. `answered`: its reply came whole; without a body where that is too large to be kept. */
export type RelayEnd =
  | {
      readonly kind: 'answered'
      readonly reply: Omit<KeptReply, 'body'> & { readonly body: Buffer | undefined }
    }
  | { readonly kind: 'notSent' }
  | { readonly kind: 'lost' }

type Outcome = Pick<Settled, 'state' | 'reason' | 'mark'>

/**
 * What the journal keeps of a request that V2 was sent, for each record of it: `each` is how many have a part in the reply of their own,
 * undefined: one stands for the whole request. Nothing of it is ever due, since what V2 was sent is not sent again from here. The reply
 * goes with the first record, if V2 took the request. Without one, records stay active as long as their client may send them again,
 * so that a newer one of their key supersedes them.
 */
export async function outcomesOf(
  end: RelayEnd,
  kind: 'batch' | 'record',
  each: number | undefined,
  reading: ReplyReading,
): Promise<Settled[]> {
  const outcomes = await readOutcomes(end, kind, each, reading)
  // A single record has no ids, so it never comes again as the same one.
  const isRepeatable = kind === 'batch'
  const kept = isRepeatable && end.kind === 'answered' ? toKept(end.reply) : undefined
  return outcomes.map((outcome, position) => ({
    position,
    answer: position === 0 && kept !== undefined ? encodeKeptReply(kept) : undefined,
    retry: isRepeatable && kept === undefined && outcome.state !== 'confirmed' ? 'resend' : undefined,
    ...outcome,
  }))
}

/** True for what `outcomesOf` gives only where V2's reply was kept. */
export function hadKeptReply({ state, reason }: Pick<StoredRecord | Settled, 'state' | 'reason'>): boolean {
  return state === 'confirmed' || reason === 'part' || reason === 'noParts'
}

/** How the work on one reply is bounded. */
export interface ReplyReading {
  readonly slices: Slices
  /** Called with the bytes that it takes to read it; may throw to refuse more. */
  readonly onBytes?: ((count: number) => void) | undefined
}

/**
 * True for a kept reply that leaves nothing to be sent again: each record was accepted, or refused for what it says; or V2 gave one answer
 * for all, as it does where the ids of header and body differ (batch-wire 3).
 */
export async function isFinalReply(reply: KeptReply, count: number, reading: ReplyReading): Promise<boolean> {
  const statuses = await statusesOfParts(reply, reading)
  if (statuses === undefined) return !/^\s*multipart\//i.test(fieldOf(reply, 'content-type') ?? '')
  return statuses.length === count && statuses.every((status) => isTaken(status) || isOfRecord(status))
}

/** Refusals that are no verdict on the record: of credentials, of a request that was late, of one too many. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 408, 429])
const isOfRecord = (status: number): boolean => status >= 400 && status < 500 && !PASSING.has(status)

/** The status of each part of a reply of V2; undefined: they cannot be read. */
export async function statusesOfParts(
  reply: Pick<KeptReply, 'fields' | 'body'>,
  reading: ReplyReading,
): Promise<readonly number[] | undefined> {
  return (await readParts(reply, reading))?.map(({ status }) => status)
}

async function readParts(
  reply: Pick<KeptReply, 'fields' | 'body'>,
  { slices, onBytes = () => undefined }: ReplyReading,
): Promise<readonly ReplyPart[] | undefined> {
  const contentEncoding = fieldOf(reply, 'content-encoding')
  try {
    // Refusals may be alike to the last byte.
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

/** The state of each part of a reply of V2; undefined: they cannot be read. */
export async function statesOfParts(
  reply: KeptReply,
  reading: ReplyReading,
): Promise<readonly Settled['state'][] | undefined> {
  return (await statusesOfParts(reply, reading))?.map((status) => toOutcome(status).state)
}

/** A larger reply is read by its client alone. */
const MAX_INFLATED_BYTES = 33_554_432

const markSchema = z.object({ ExternalID: z.string(), RecordedOn: z.string().nullish() })

/** The mark that V2 shows in its reply to a record; undefined: it shows none. */
function readMark(body: string | undefined): Settled['mark'] {
  const record = markSchema.safeParse(parseJson(body ?? ''))
  return record.success ? markOf(record.data) : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A reply without a record.
    return undefined
  }
}

const isTaken = (status: number): boolean => status >= 200 && status < 300

function toKept(reply: Extract<RelayEnd, { kind: 'answered' }>['reply']): KeptReply | undefined {
  const { body } = reply
  return isTaken(reply.status) && body !== undefined ? { ...reply, body } : undefined
}

async function readOutcomes(
  end: RelayEnd,
  kind: 'batch' | 'record',
  each: number | undefined,
  reading: ReplyReading,
): Promise<readonly Outcome[]> {
  const all = (outcome: Outcome): Outcome[] => Array.from({ length: each ?? 1 }, () => outcome)
  if (end.kind === 'notSent') return all({ state: 'refused', reason: 'notSent' })
  if (end.kind === 'lost') return all({ state: 'unknown', reason: 'connectionLost' })
  const whole = toOutcome(end.reply.status)
  if (whole.state !== 'confirmed') return all(whole)
  if (kind === 'record') return all({ ...whole, mark: readMark(end.reply.body?.toString()) })
  const kept = toKept(end.reply)
  if (kept === undefined) return all({ state: 'unknown', reason: 'replyTooLarge' })
  if (each === undefined) return all(whole)
  // A single 200 for all (batch-wire 3) says nothing of any record.
  const parts = await readParts(kept, reading)
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
  if (isTaken(status)) return { state: 'confirmed' }
  return { state: status >= 400 && status < 500 ? 'refused' : 'unknown', reason: `HTTP_${status}` }
}
