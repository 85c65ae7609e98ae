import { AdapterError, errorRules } from '../../errors.ts'
import { oneSlice } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { toFlatRecord } from '../../translate/index.ts'
import {
  type BatchLimits,
  type BatchReply,
  createBatchEncoder,
  decodeBatchReply,
  encodeMismatch,
  type FlatReply,
  type PartReply,
  type ReplyPart,
} from '../../v2/index.ts'
import { type Plan, type PlannedRecord, planWrites } from '../../writes/plan.ts'
import { toFaultPart, toMarkPart } from '../../writes/reply.ts'
import type { WriteRequest } from '../../writes/stored-request.ts'
import { Findings, type OwnRules, verdictOnly } from '../diff/findings.ts'
import { isMembers, type Members } from '../diff/values.ts'
import { fieldOf, type WireWrite, writeRequestOf } from '../wire-exchange.ts'
import {
  type CheckResult,
  type ComparedRecord,
  type LiveResult,
  plainBody,
  type SkipReason,
} from './exchange.ts'
import { type FollowedMark, type JudgedMark, toFollowed } from './follow-marks.ts'
import { factsOf, type MarkPlace, noFacts, readBody, unknownPlace, unwrapped } from './marks.ts'
import {
  compareBodies,
  compareEnvelopes,
  comparePartForm,
  contentIdOf,
  type ReplyEnvelope,
} from './reply-form.ts'

/** The decoded reply of V2 to a write, and what is needed to compare it once the marks on V3 are known. */
export interface OpenReply {
  readonly kind: 'open'
  /** The marks of the records that V2 accepted and that the adapter would have posted. */
  readonly accepted: readonly FollowedMark[]
  /** The approximate memory of the reply and its marks, in bytes. */
  readonly bytes: number
  /**
   * Compares the reply of V2 with the reply that the adapter would have built from `marks`. Omits accepted records that have no mark in
   * `marks`.
   */
  readonly judge: (marks: readonly JudgedMark[]) => readonly ComparedRecord[]
}

interface ReplyComparison {
  readonly partner: Partner
  /** Returns, for each record, its position among the writes with the same key (learner and event). Called once the keys are known. */
  readonly placesOf: (keys: readonly (string | undefined)[]) => readonly MarkPlace[]
  readonly limits: BatchLimits
  readonly rules: OwnRules | undefined
  /** The maximum size of a reply in bytes. Larger replies are skipped. Default: 1 MiB. */
  readonly maxReplyBytes?: number
}

const MAX_REPLY_BYTES = 1_048_576
/** The memory that the marks of both sides take, in bytes per byte of the reply (a measured value). */
const MARKS_PER_BYTE = 4

/** Decodes a write and the reply of V2. Returns an `OpenReply` if the result depends on marks of V3, else the final result. */
export async function openReply(
  written: WireWrite,
  { partner, placesOf, limits, rules, maxReplyBytes = MAX_REPLY_BYTES }: ReplyComparison,
): Promise<CheckResult | OpenReply> {
  const { kind, receivedMs, reply } = written
  const { body } = written.request
  const request = writeRequestOf(written, partner)
  const skipped = (reason: SkipReason): CheckResult => ({ kind: 'skipped', reason })
  if (body === undefined) return skipped('tooLarge')
  const plan = await planOrRefusal(planWrites(request, body, partner, receivedMs, limits, oneSlice))
  if (plan instanceof AdapterError) return compareRefusals(reply.status, plan)
  const places = placesOf(plan.records.map(({ key }) => (key === '' ? undefined : key)))
  // A refusal of the whole batch says nothing about its records, so they are not compared.
  if (kind === 'batch' && reply.status >= 400) return skipped('refused')
  if (plan.records.length === 0) return skipped('empty')
  const plain = await plainBody(reply)
  if (!Buffer.isBuffer(plain)) return skipped(plain)
  if (plain.length > maxReplyBytes) return skipped('tooLarge')
  const form = readReply(kind, reply, plain)
  if (form === undefined) return skipped('form')
  const { parts, extra } = matchParts(plan.records, plan.outcomesShown ? form.parts : [])
  const answers = plan.records.map((planned, index) =>
    toAnswered(planned, parts[index], places[index] ?? unknownPlace),
  )
  const envelope = { status: reply.status, contentType: fieldOf(reply, 'content-type'), form }
  return {
    kind: 'open',
    accepted: answers.flatMap(({ accepted }) => accepted ?? []),
    bytes: MARKS_PER_BYTE * plain.length,
    judge: (marks) => [
      ...judgeRecords(answers, marks, kind === 'batch' ? envelope : undefined, request, plan, rules),
      ...Array.from({ length: extra }, () => ({ ...noFacts, ...verdictOnly('onlyV2') })),
    ],
  }
}

interface MatchedPart {
  readonly form: ReplyPart
  readonly isInOrder: boolean
}

interface AnsweredRecord {
  readonly planned: PlannedRecord
  readonly part: MatchedPart | undefined
  readonly body: unknown
  readonly place: MarkPlace
  /** The values of V2's reply. Members that the reply lacks come from the record that the adapter would have posted. */
  readonly mark: Members
  /** The mark to look for on V3, or `undefined` if V2 did not accept the record or the adapter would not have posted it. */
  readonly accepted: FollowedMark | undefined
}

function toAnswered(planned: PlannedRecord, part: MatchedPart | undefined, place: MarkPlace): AnsweredRecord {
  const { record } = planned
  const body = readBody(part?.form.body)
  const status = part?.form.status ?? 0
  const isAccepted = status >= 200 && status < 300
  const inner = unwrapped(body)
  const answered = isAccepted && isMembers(inner) ? inner : {}
  const accepted = record && isAccepted ? toFollowed(record, answered, place) : undefined
  const mark = { ...(record && toFlatRecord(record)), ...answered }
  return { planned, part, body, place, mark, accepted }
}

function judgeRecords(
  answers: readonly AnsweredRecord[],
  marks: readonly JudgedMark[],
  envelope: ReplyEnvelope | undefined,
  request: WriteRequest,
  plan: Plan,
  rules: OwnRules | undefined,
): readonly ComparedRecord[] {
  const known = new Map(marks.map((mark) => [mark.followed, mark]))
  const context = { ...request, newId }
  const parts = answers.map(({ planned, accepted }): PartReply => {
    if (planned.record === undefined) return toFaultPart(planned, context)
    const shown = accepted && known.get(accepted)?.shown
    // A record without a mark still needs a part, because the parts are matched by position.
    if (shown === undefined) return { ...planned.answering, status: 204, json: undefined }
    // The mark comes from the read path of the adapter, so it has the form of a `FlatReply`.
    return toMarkPart(planned.answering, shown as unknown as FlatReply, context)
  })
  const built = buildBatchReply(plan, request, parts)
  const whole = new Findings(rules)
  if (envelope !== undefined) compareEnvelopes(envelope, built, whole)
  /** Judges one record. Returns `undefined` if a newer mark replaced the accepted mark, or if the accepted mark was not read. */
  const judge = (
    { planned, part, body, accepted }: AnsweredRecord,
    index: number,
  ): LiveResult | undefined => {
    const findings = new Findings(rules)
    findings.add(whole.result())
    if (!plan.outcomesShown) {
      // A batch with mismatched ids gets a single 200 (batch-wire 3), of which only the form can be compared.
      findings.agree('no-outcome-shown', 'part')
      return findings.result()
    }
    const [own, other] = [parts[index], built.form.parts[index]]
    if (part === undefined) return verdictOnly('onlyV3')
    if (own === undefined || other === undefined) return verdictOnly('unknown')
    const { status } = part.form
    if (accepted !== undefined) {
      const mark = known.get(accepted)
      if (mark?.shown === undefined) return mark?.comparison
      findings.add(mark.comparison)
    } else if (planned.record !== undefined) return verdictOnly(isRefusal(status) ? 'unchecked' : 'unknown')
    if (envelope !== undefined) comparePartForm(part.form, other, findings)
    else if (status !== own.status)
      findings.differ('reply/status', 'value', [`status:${status}`, `status:${own.status}`])
    if (!part.isInOrder) findings.differ('part/order', 'order', ['order:other', 'order:posted'])
    // Bodies of parts with different statuses are not comparable.
    if (status === own.status) compareBodies(body, readBody(own.json), rules, findings)
    return findings.result()
  }
  return answers.flatMap((answer, index) => {
    const judged = judge(answer, index)
    return judged === undefined ? [] : [{ ...factsOf(answer.mark, answer.place), ...judged }]
  })
}

/** Returns true if V2 judged the record invalid. Errors of credentials, rate limits or the service say nothing about the record. */
const isRefusal = (status: number): boolean =>
  status >= 400 && status < 500 && ![401, 403, 408, 429].includes(status)

/** Returns a fixed id, since no client receives these replies. */
const newId = (): string => '00000000-0000-4000-8000-000000000000'

/**
 * Builds the batch reply that the adapter would have sent, with the encoder that serves clients. `parts` are in the order of the records.
 */
function buildBatchReply(
  plan: Plan,
  { layout, msgtypeResponse, recordsUrl }: WriteRequest,
  parts: readonly PartReply[],
): ReplyEnvelope {
  const encoder = createBatchEncoder(layout, newId, msgtypeResponse, recordsUrl)
  const { contentType, body } = plan.outcomesShown
    ? {
        contentType: encoder.contentType,
        body: parts.map((part) => encoder.part(part)).join('') + encoder.close(plan.changesets),
      }
    : encodeMismatch(newId)
  return { status: 200, contentType, form: decodeBatchReply(Buffer.from(body), contentType) }
}

/** Matches parts by Content-ID if the ids are complete and unique, and otherwise by position, as a client would. */
function matchParts(
  records: readonly PlannedRecord[],
  parts: readonly ReplyPart[],
): { readonly parts: readonly (MatchedPart | undefined)[]; readonly extra: number } {
  const ids = records.map(({ answering }) => answering.contentId)
  const own = new Set(ids)
  const known = new Map(parts.map((form, index) => [contentIdOf(form).value, index]))
  const isById =
    known.size === parts.length &&
    own.size === ids.length &&
    ids.every((id) => id !== undefined) &&
    [...known.keys()].every((id) => id !== undefined && own.has(id))
  const matched = ids.map((id, position) => {
    const index = isById ? known.get(id) : position
    const form = index === undefined ? undefined : parts[index]
    return form === undefined ? undefined : { form, isInOrder: index === position }
  })
  return { parts: matched, extra: parts.length - matched.filter((part) => part !== undefined).length }
}

async function planOrRefusal(plan: Promise<Plan>): Promise<Plan | AdapterError> {
  try {
    return await plan
  } catch (cause) {
    if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return cause
    throw cause
  }
}

function compareRefusals(v2Status: number, refusal: AdapterError): CheckResult {
  const findings = new Findings()
  if (v2Status === refusal.status) findings.agree('refused-whole', 'reply/status')
  else findings.differ('reply/status', 'value', [`status:${v2Status}`, `status:${refusal.status}`])
  return { kind: 'compared', records: [{ ...noFacts, ...findings.result() }] }
}

/** Returns the parts of a reply, or `undefined` if it is not a batch reply. The reply to a single record becomes one part. */
function readReply(kind: WireWrite['kind'], reply: WireWrite['reply'], body: Buffer): BatchReply | undefined {
  if (kind === 'record') {
    const part = {
      contentId: undefined,
      changeset: undefined,
      mime: [],
      status: reply.status,
      reason: '',
      http: [],
    }
    return { changesets: 0, parts: [{ ...part, body: body.toString('utf8').trim() }] }
  }
  try {
    return decodeBatchReply(body, fieldOf(reply, 'content-type'))
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}
