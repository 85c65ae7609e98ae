import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import { decodeReplyForm, type ReplyPartForm } from '../../v2/index.ts'
import type { V3Record } from '../../v3/record.ts'
import type { Plan, PlannedRecord } from '../../writes/plan.ts'
import { assumeOutcome, isObject, matchParts, readBody } from '../live/index.ts'
import { type Exchange, headerOf } from './exchange.ts'

/** A larger reply would be read for too long at once. */
const MAX_REPLY_BYTES = 1_048_576
/** The cost of an answer, in bytes of a batch. */
const ANSWER_WORK = 4_096

/**
 * The answers of V3 that lead to the reply that the client got, as JSON texts by position of the records that are posted: assumed from the reply,
 * as live comparison does. Undefined where the reply shows no outcomes, or cannot be decoded.
 */
export async function toV3Responses(
  plan: Plan,
  exchange: Exchange,
  slices: Slices,
): Promise<readonly string[] | undefined> {
  const { reply, receivedMs } = exchange
  if (!plan.outcomesShown || reply.body.length > MAX_REPLY_BYTES) return undefined
  await slices.next()
  const forms = formsOf(exchange)
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

function formsOf({ kind, reply }: Exchange): readonly ReplyPartForm[] {
  const { status, body, headers } = reply
  if (kind === 'record') {
    const part = { changeset: undefined, mime: [], reason: '', http: [] }
    return [{ ...part, status, body: body.toString('utf8').trim() }]
  }
  try {
    return decodeReplyForm(body, headerOf(headers, 'content-type')).parts
  } catch (cause) {
    if (cause instanceof AdapterError) return []
    throw cause
  }
}

function answerOf(
  planned: PlannedRecord,
  record: V3Record,
  form: ReplyPartForm | undefined,
  receivedMs: number,
): object | null {
  if (form === undefined) return null
  const { status } = form
  const body = readBody(form.body)
  const mark = isObject(body) && isObject(body['d']) ? body['d'] : body
  const outcome = assumeOutcome(planned, form, mark, receivedMs)
  switch (outcome.kind) {
    case 'accepted':
      return { status: 201, body: { ...record, ...outcome.reply } }
    case 'refused': {
      const details = outcome.errors.map((error) => ({
        code: error['ErrorCode'],
        message: error['Message'],
        target: error['ResourceIdentifier'],
      }))
      return { status, body: { error: { code: 'BadRequest', message: 'The record is not valid.', details } } }
    }
    case 'fault':
    case 'unknown':
      return { status }
  }
}
