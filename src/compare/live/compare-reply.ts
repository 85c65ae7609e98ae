import { AdapterError, errorRules } from '../../errors.ts'
import { oneSlice } from '../../http/slices.ts'
import { toFlatRecord } from '../../translate/index.ts'
import {
  type BatchLimits,
  decodeBatchReply,
  type PartReply,
  type BatchReply,
  type ReplyPart,
} from '../../v2/index.ts'
import type { Partner } from '../../partners/partner.ts'
import type { V3Record } from '../../v3/record.ts'
import { planWrites } from '../../writes/index.ts'
import type { Plan, PlannedRecord } from '../../writes/plan.ts'
import type { ComparedRecord } from '../compared-exchange.ts'
import { Findings, type OwnRules, plainly } from '../diff/index.ts'
import type { Comparison } from '../verdict.ts'
import { fieldOf } from '../wire-exchange.ts'
import { type AssumedOutcome, assumeOutcome, buildBatchReply, buildPart, matchParts } from './assume-reply.ts'
import { type OfferedWrite, plainBody, type SkipReason } from './exchange.ts'
import {
  factsOf,
  type FlatMark,
  isObject,
  type MarkPlace,
  noFacts,
  readBody,
  unknownPlace,
  unwrapped,
} from './marks.ts'
import { codesOf, compareBodies, compareEnvelopes, comparePartForm } from './reply-form.ts'

/** A record that V2 accepted, and the mark that it says it has now. */
export interface AcceptedMark {
  readonly record: V3Record
  /** V2's flat record; undefined: its reply had none. */
  readonly mark: FlatMark | undefined
  readonly place: MarkPlace
}

type ReplyResult =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | {
      readonly kind: 'compared'
      readonly records: readonly ComparedRecord[]
      readonly accepted: readonly AcceptedMark[]
      /** Records of a batch whose reply shows no outcomes (batch-wire 3). */
      readonly hidden: readonly AcceptedMark[]
    }

/** A write that V2 served, live or recorded. */
type WrittenExchange = Pick<OfferedWrite, 'request' | 'body' | 'reply' | 'receivedMs'>

interface ReplyComparison {
  readonly partner: Partner
  /** The place of each record among the writes of its key; called once the keys are known. */
  readonly placesOf: (keys: readonly (string | undefined)[]) => readonly MarkPlace[]
  readonly limits: BatchLimits
  /** The partner's own rules. */
  readonly rules: OwnRules | undefined
  /** Larger replies are skipped. Default 1 MiB. */
  readonly maxReplyBytes?: number
}

/** A larger reply would be read for too long at once. */
const MAX_REPLY_BYTES = 1_048_576

/**
 * Decodes and translates what V2 was sent as if V3 had been sent it, builds the reply that the adapter would have given, and sets it
 * against V2's, record by record. Nothing is sent.
 */
export async function compareReply(
  written: WrittenExchange,
  { partner, placesOf, limits, rules, maxReplyBytes = MAX_REPLY_BYTES }: ReplyComparison,
): Promise<ReplyResult> {
  const { body, receivedMs, request, reply } = written
  const skipped = (reason: SkipReason): ReplyResult => ({ kind: 'skipped', reason })
  if (body === undefined) return skipped('tooLarge')
  const plan = await planOrRefusal(planWrites(request, body, partner, receivedMs, limits, oneSlice))
  if (plan instanceof AdapterError) return compareRefusals(reply.status, plan)
  const places = placesOf(plan.records.map(({ key }) => (key === '' ? undefined : key)))
  // What V2 refuses as a whole says nothing of the records.
  if (request.kind === 'batch' && reply.status >= 400) return skipped('refused')
  if (plan.records.length === 0) return skipped('empty')
  const plain = await plainBody(reply)
  if (!Buffer.isBuffer(plain)) return skipped(plain)
  if (plain.length > maxReplyBytes) return skipped('tooLarge')
  const form = readReply(request.kind, reply.status, fieldOf(reply, 'content-type'), plain)
  return form === undefined ? skipped('form') : compareForms(written, plan, form, places, rules)
}

/** A record with the part that V2 answered, and the one that the adapter would have. */
interface JudgedRecord {
  readonly planned: PlannedRecord
  readonly part: { readonly form: ReplyPart; readonly isInOrder: boolean } | undefined
  readonly body: unknown
  readonly outcome: AssumedOutcome
  readonly built: PartReply | undefined
}

function compareForms(
  { request, reply, receivedMs }: WrittenExchange,
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
  // A record of which nothing is known still has its place in the reply.
  const asWritten = judged.map(({ built, planned }) => built ?? emptyPart(planned))
  const built = buildBatchReply(plan, request, asWritten)
  const whole = new Findings(rules)
  const own = { status: reply.status, contentType: fieldOf(reply, 'content-type'), form }
  if (request.kind === 'batch') compareEnvelopes(own, built, whole)
  // Parts would be outcomes.
  const isHidden = !plan.outcomesShown && form.parts.length === 0
  const records: ComparedRecord[] = []
  const accepted: AcceptedMark[] = []
  const hidden: AcceptedMark[] = []
  for (const [index, one] of judged.entries()) {
    const place = places[index] ?? unknownPlace
    const findings = new Findings(rules)
    findings.add(whole.result())
    records.push({
      ...factsOf(markOf(one), { isCorrection: place.isCorrection, errorCodes: codesOf(one.body) }),
      ...(plan.outcomesShown
        ? judge(one, built.form.parts[index], request.kind === 'batch', rules, findings)
        : judgeHidden(findings)),
    })
    const { record } = one.planned
    if (record === undefined) continue
    if (plan.outcomesShown && one.outcome.kind === 'accepted')
      accepted.push({ record, mark: answeredMark(one), place })
    if (isHidden) hidden.push({ record, mark: undefined, place })
  }
  for (let count = 0; count < extra; count += 1) records.push({ ...noFacts, ...plainly('onlyV2') })
  return { kind: 'compared', records, accepted, hidden }
}

/** A single 200 for all (batch-wire 3): only its form can be compared. */
function judgeHidden(findings: Findings): Comparison {
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
  if (part === undefined) return plainly('onlyV3')
  if (built === undefined || builtForm === undefined) return plainly('unknown')
  const { status } = part.form
  if (isBatch) comparePartForm(part.form, builtForm, findings)
  else if (status !== built.status)
    findings.differ('reply/status', 'value', [`status:${status}`, `status:${built.status}`])
  if (!part.isInOrder) findings.differ('part/order', 'order', ['order:other', 'order:posted'])
  // The body of another status says another thing.
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

/** Both sides refuse the request as a whole, or the adapter alone does. */
function compareRefusals(v2Status: number, refusal: AdapterError): ReplyResult {
  const findings = new Findings()
  if (v2Status === refusal.status) findings.agree('refused-whole', 'reply/status')
  else findings.differ('reply/status', 'value', [`status:${v2Status}`, `status:${refusal.status}`])
  return { kind: 'compared', records: [{ ...noFacts, ...findings.result() }], accepted: [], hidden: [] }
}

/** The parts of a reply; that to a single record is one part. Undefined: it is not a batch reply. */
export function readReply(
  kind: 'batch' | 'record',
  status: number,
  contentType: string | undefined,
  body: Buffer,
): BatchReply | undefined {
  if (kind === 'record') {
    const part = { contentId: undefined, changeset: undefined, mime: [], status, reason: '', http: [] }
    return { changesets: 0, parts: [{ ...part, body: body.toString('utf8').trim() }] }
  }
  try {
    return decodeBatchReply(body, contentType)
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

function emptyPart({ answering }: PlannedRecord): PartReply {
  const { contentId, contentIdInHttp, changeset } = answering
  return { contentId, contentIdInHttp, changeset, status: 204, json: undefined }
}

function answeredMark({ body }: JudgedRecord): FlatMark | undefined {
  const mark = unwrapped(body)
  return isObject(mark) ? mark : undefined
}

/** What was posted, with what V2 says of it: also of what the adapter would have refused, where V2 took it. */
function markOf(own: JudgedRecord): FlatMark {
  const { record } = own.planned
  const status = own.part?.form.status ?? 0
  return {
    ...(record === undefined ? {} : toFlatRecord(record)),
    ...(status >= 200 && status < 300 ? answeredMark(own) : {}),
  }
}
