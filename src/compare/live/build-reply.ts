import type { Slices } from '../../http/slices.ts'
import {
  createBatchEncoder,
  encodeMismatch,
  type PartReply,
  type ReplyForm,
  decodeReplyForm,
} from '../../v2/index.ts'
import type { WriteRequest } from '../../writes/index.ts'
import type { Plan, PlannedRecord } from '../../writes/plan.ts'
import { replyContextOf, toFaultPart, toReplyPart } from '../../writes/reply.ts'
import type { AssumedOutcome } from './assume-outcome.ts'
import type { FlatMark } from './flat-mark.ts'

/** Ids of a reply that no client gets. */
const newId = (): string => '00000000-0000-4000-8000-000000000000'
const ENCODE_WORK = 2_048

/** The part that the adapter would have written for a record with this outcome. Undefined: the outcome is not known. */
export function buildPart(
  planned: PlannedRecord,
  outcome: AssumedOutcome,
  request: WriteRequest,
): PartReply | undefined {
  const context = replyContextOf(request, newId)
  switch (outcome.kind) {
    case 'fault':
      return toFaultPart(planned, context)
    case 'accepted':
      return toReplyPart(planned, { kind: 'accepted', reply: outcome.reply }, context)
    case 'refused':
      return toReplyPart(
        planned,
        { kind: 'refused', error: toUpstreamError(outcome.status, outcome.errors) },
        context,
      )
    case 'unknown':
      return undefined
  }
}

/** The whole reply of the adapter in its form, through the encoder that writes replies. `parts` in the order of the records. */
export async function buildBatchReply(
  plan: Plan,
  request: WriteRequest,
  parts: readonly PartReply[],
  slices: Slices,
): Promise<{ readonly contentType: string; readonly form: ReplyForm }> {
  if (!plan.outcomesShown) {
    const { contentType, body } = encodeMismatch(newId)
    return { contentType, form: decodeReplyForm(Buffer.from(body), contentType) }
  }
  const encoder = createBatchEncoder(request.layout, newId, request.msgtypeResponse, request.recordsUrl)
  let text = ''
  for (const part of parts) {
    text += encoder.part(part)
    if (slices.spend(ENCODE_WORK)) await slices.next()
  }
  text += encoder.close(plan.changesets)
  return { contentType: encoder.contentType, form: decodeReplyForm(Buffer.from(text), encoder.contentType) }
}

/** The refusal in the form of V3: the service's own codes and words. */
function toUpstreamError(status: number, errors: readonly FlatMark[]) {
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const entries = errors.map((own) => ({
    code: text(own['ErrorCode']),
    message: text(own['Message']) ?? '',
    target: text(own['ResourceIdentifier']),
  }))
  return { status, form: 'odata' as const, entries }
}
