import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { noBatchLimits, type ReplyPart } from '../../v2/index.ts'
import { encodeRecord, type V3Record } from '../../v3/record.ts'
import { planWrites, toWriteRequest, type WriteRequest } from '../../writes/index.ts'
import type { Plan, PlannedRecord } from '../../writes/plan.ts'
import { assumeOutcome, matchParts } from '../live/assume-reply.ts'
import { readReply } from '../live/compare-reply.ts'
import { readBody, unwrapped } from '../live/marks.ts'
import { fieldOf } from '../wire-exchange.ts'
import { headersOf, type RecordedExchange } from './exchange.ts'

/** No host of an installation is recorded. */
export const RECORDED_HOST = 'recorded.invalid'

/** The request of a recorded write as the adapter would have taken it, under its own address. */
export function recordedRequest(
  { request, target }: RecordedExchange,
  kind: WriteRequest['kind'],
  partner: Partner,
): WriteRequest {
  const root = `http://${RECORDED_HOST}${target.slice(0, Math.max(0, target.search(/\/v2\//i)))}`
  return toWriteRequest(kind, partner, headersOf(request), {
    root,
    records: `${root}/V2/Attendance/AttendanceRecords`,
  })
}

/** What V3 gets for a recorded write, and what it answers: JSON texts, by position, as test cases of `fixtures/` have them. */
export interface V3Script {
  /** With `{{now}}` for the time of receipt. */
  readonly requests: readonly string[]
  /** Undefined: the reply to the client does not say. */
  readonly responses: readonly string[] | undefined
}

const NOW = '{{now}}'
/** The cost of a record and of an answer, in bytes of a batch that is decoded. */
const [ENCODE_WORK, ANSWER_WORK] = [2_048, 4_096]

/** Undefined for a read, and for a request that cannot be decoded. */
export async function toV3Script(
  exchange: RecordedExchange,
  partner: Partner,
  slices: Slices,
): Promise<V3Script | undefined> {
  const { kind, receivedMs } = exchange
  const { body } = exchange.request
  if (kind !== 'batch' && kind !== 'record') return undefined
  const request = recordedRequest(exchange, kind, partner)
  const plan = await planWrites(request, body, partner, receivedMs, noBatchLimits, slices).catch(unlessCoded)
  if (plan === undefined) return undefined
  if (!plan.outcomesShown && partner.mismatch === 'drop') return { requests: [], responses: undefined }
  const ownTime = new Date(receivedMs).toISOString()
  await slices.next()
  const requests: string[] = []
  for (const { record } of plan.records) {
    if (record === undefined) continue
    const isOwn = record.RecordedOn === ownTime
    requests.push(encodeRecord(isOwn ? { ...record, RecordedOn: NOW } : record, partner.bodyProfile))
    if (slices.spend(ENCODE_WORK)) await slices.next()
  }
  return { requests, responses: await toV3Responses(kind, plan, exchange, slices) }
}

function unlessCoded(cause: unknown): undefined {
  if (!(cause instanceof AdapterError)) throw cause
}

/** A larger reply would be read for too long at once. */
const MAX_REPLY_BYTES = 1_048_576

/**
 * The answers of V3 that lead to the reply that the client got, by position of the records that are posted: assumed from the reply,
 * as live comparison does. Undefined where the reply shows no outcomes, or cannot be decoded.
 */
async function toV3Responses(
  kind: WriteRequest['kind'],
  plan: Plan,
  exchange: RecordedExchange,
  slices: Slices,
): Promise<readonly string[] | undefined> {
  const { reply, receivedMs } = exchange
  if (!plan.outcomesShown || reply.body.length > MAX_REPLY_BYTES) return undefined
  await slices.next()
  const forms = readReply(kind, reply.status, fieldOf(reply, 'content-type'), reply.body)?.parts ?? []
  if (forms.length === 0) return undefined
  await slices.next()
  const { parts } = matchParts(plan.records, forms)
  const answers: string[] = []
  for (const [index, planned] of plan.records.entries()) {
    if (planned.record === undefined) continue
    answers.push(JSON.stringify(answerOf(planned, planned.record, parts[index]?.form, receivedMs)))
    if (slices.spend(ANSWER_WORK)) await slices.next()
  }
  return answers
}

function answerOf(
  planned: PlannedRecord,
  record: V3Record,
  form: ReplyPart | undefined,
  receivedMs: number,
): object | null {
  if (form === undefined) return null
  const { status } = form
  const outcome = assumeOutcome(planned, form, unwrapped(readBody(form.body)), receivedMs)
  if (outcome.kind === 'accepted') return { status: 201, body: { ...record, ...outcome.reply } }
  if (outcome.kind !== 'refused') return { status }
  const details = outcome.errors.map((error) => ({
    code: error['ErrorCode'],
    message: error['Message'],
    target: error['ResourceIdentifier'],
  }))
  return { status, body: { error: { code: 'BadRequest', message: 'The record is not valid.', details } } }
}
