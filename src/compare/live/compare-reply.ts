import { AdapterError, errorRules } from '../../errors.ts'
import { oneSlice } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { toFlatRecord } from '../../translate/index.ts'
import {
  type BatchLimits,
  type BatchReply,
  decodeBatchReply,
  type PartReply,
  type ReplyPart,
} from '../../v2/index.ts'
import type { V3Record } from '../../v3/record.ts'
import { type Plan, type PlannedRecord, planWrites } from '../../writes/plan.ts'
import type { WriteRequest } from '../../writes/stored-request.ts'
import { Findings, type OwnRules, verdictOnly } from '../diff/findings.ts'
import { isMembers, type Members } from '../diff/values.ts'
import type { Comparison } from '../verdict.ts'
import { fieldOf, type WireWrite, writeRequestOf } from '../wire-exchange.ts'
import { type AssumedOutcome, assumeOutcome, buildBatchReply, buildPart, matchParts } from './assume-reply.ts'
import { type ComparedRecord, plainBody, type SkipReason } from './exchange.ts'
import { factsOf, type MarkPlace, noFacts, readBody, unknownPlace, unwrapped } from './marks.ts'
import { codesOf, compareBodies, compareEnvelopes, comparePartForm } from './reply-form.ts'

export interface AcceptedMark {
  readonly record: V3Record
  /** `undefined` if V2's reply had no record. */
  readonly mark: Members | undefined
  readonly place: MarkPlace
}

type ReplyResult =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | {
      readonly kind: 'compared'
      readonly records: readonly ComparedRecord[]
      readonly accepted: readonly AcceptedMark[]
    }

interface ReplyComparison {
  readonly partner: Partner
  /** Called once the keys are known. */
  readonly placesOf: (keys: readonly (string | undefined)[]) => readonly MarkPlace[]
  readonly limits: BatchLimits
  readonly rules: OwnRules | undefined
  /** Larger replies are skipped. Default: 1 MiB. */
  readonly maxReplyBytes?: number
}

const MAX_REPLY_BYTES = 1_048_576

/** Compares the reply that the adapter would have sent with V2's, record by record. Sends nothing. */
export async function compareReply(
  written: WireWrite,
  { partner, placesOf, limits, rules, maxReplyBytes = MAX_REPLY_BYTES }: ReplyComparison,
): Promise<ReplyResult> {
  const { kind, receivedMs, reply } = written
  const { body } = written.request
  const request = writeRequestOf(written, partner)
  const skipped = (reason: SkipReason): ReplyResult => ({ kind: 'skipped', reason })
  if (body === undefined) return skipped('tooLarge')
  const plan = await planOrRefusal(planWrites(request, body, partner, receivedMs, limits, oneSlice))
  if (plan instanceof AdapterError) return compareRefusals(reply.status, plan)
  const places = placesOf(plan.records.map(({ key }) => (key === '' ? undefined : key)))
  // A batch that V2 refused as a whole shows nothing about its records.
  if (kind === 'batch' && reply.status >= 400) return skipped('refused')
  if (plan.records.length === 0) return skipped('empty')
  const plain = await plainBody(reply)
  if (!Buffer.isBuffer(plain)) return skipped(plain)
  if (plain.length > maxReplyBytes) return skipped('tooLarge')
  const form = readReply(kind, reply, plain)
  return form === undefined ? skipped('form') : compareForms(written, request, plan, form, places, rules)
}

interface JudgedRecord {
  readonly planned: PlannedRecord
  readonly part: { readonly form: ReplyPart; readonly isInOrder: boolean } | undefined
  readonly body: unknown
  readonly outcome: AssumedOutcome
  readonly built: PartReply | undefined
}

function compareForms(
  { kind, reply, receivedMs }: WireWrite,
  request: WriteRequest,
  plan: Plan,
  form: BatchReply,
  places: readonly MarkPlace[],
  rules: OwnRules | undefined,
): ReplyResult {
  const { parts, extra } = matchParts(plan.records, plan.outcomesShown ? form.parts : [])
  const judged = plan.records.map((planned, index): JudgedRecord => {
    const part = parts[index]
    const body = readBody(part?.form.body)
    const outcome = assumeOutcome(planned, part?.form ?? { status: 0 }, unwrapped(body), receivedMs)
    return { planned, part, body, outcome, built: buildPart(planned, outcome, request) }
  })
  // A record with an unknown outcome still has its place in the reply.
  const asWritten = judged.map(({ built, planned }) => built ?? emptyPart(planned))
  const built = buildBatchReply(plan, request, asWritten)
  const whole = new Findings(rules)
  const own = { status: reply.status, contentType: fieldOf(reply, 'content-type'), form }
  if (kind === 'batch') compareEnvelopes(own, built, whole)
  const records: ComparedRecord[] = []
  const accepted: AcceptedMark[] = []
  for (const [index, one] of judged.entries()) {
    const place = places[index] ?? unknownPlace
    const findings = new Findings(rules)
    findings.add(whole.result())
    records.push({
      ...factsOf(markOf(one), { isCorrection: place.isCorrection, errorCodes: codesOf(one.body) }),
      ...(plan.outcomesShown
        ? judge(one, built.form.parts[index], kind === 'batch', rules, findings)
        : judgeMismatch(findings)),
    })
    const { record } = one.planned
    if (record !== undefined && plan.outcomesShown && one.outcome.kind === 'accepted')
      accepted.push({ record, mark: answeredMark(one), place })
  }
  for (let count = 0; count < extra; count += 1) records.push({ ...noFacts, ...verdictOnly('onlyV2') })
  return { kind: 'compared', records, accepted }
}

/** Judges a batch with mismatched ids. Its reply is a single 200 (batch-wire 3), of which only the form can be compared. */
function judgeMismatch(findings: Findings): Comparison {
  findings.agree('no-outcome-shown', 'part')
  return findings.result()
}

function judge(
  { part, body, outcome, built }: JudgedRecord,
  builtForm: ReplyPart | undefined,
  isBatch: boolean,
  rules: OwnRules | undefined,
  findings: Findings,
): Comparison {
  if (part === undefined) return verdictOnly('onlyV3')
  if (built === undefined || builtForm === undefined) return verdictOnly('unknown')
  const { status } = part.form
  if (isBatch) comparePartForm(part.form, builtForm, findings)
  else if (status !== built.status)
    findings.differ('reply/status', 'value', [`status:${status}`, `status:${built.status}`])
  if (!part.isInOrder) findings.differ('part/order', 'order', ['order:other', 'order:posted'])
  // If the status differs, the bodies are not comparable.
  if (status === built.status) compareBodies(body, readBody(built.json), rules, findings)
  for (const { rule, path } of outcome.equivalences) findings.agree(rule, path)
  return findings.result()
}

async function planOrRefusal(plan: Promise<Plan>): Promise<Plan | AdapterError> {
  try {
    return await plan
  } catch (cause) {
    if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return cause
    throw cause
  }
}

function compareRefusals(v2Status: number, refusal: AdapterError): ReplyResult {
  const findings = new Findings()
  if (v2Status === refusal.status) findings.agree('refused-whole', 'reply/status')
  else findings.differ('reply/status', 'value', [`status:${v2Status}`, `status:${refusal.status}`])
  return { kind: 'compared', records: [{ ...noFacts, ...findings.result() }], accepted: [] }
}

/** Returns the parts of a reply, or `undefined` if it is not a batch reply. A reply to a single record is one part. */
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

function emptyPart({ answering }: PlannedRecord): PartReply {
  const { contentId, contentIdInHttp, changeset } = answering
  return { contentId, contentIdInHttp, changeset, status: 204, json: undefined }
}

function answeredMark({ body }: JudgedRecord): Members | undefined {
  const mark = unwrapped(body)
  return isMembers(mark) ? mark : undefined
}

/** Combines the posted record with V2's values. It includes records that the adapter would have refused but V2 accepted. */
function markOf(own: JudgedRecord): Members {
  const { record } = own.planned
  const status = own.part?.form.status ?? 0
  return {
    ...(record === undefined ? {} : toFlatRecord(record)),
    ...(status >= 200 && status < 300 ? answeredMark(own) : {}),
  }
}
