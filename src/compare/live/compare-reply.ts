import { AdapterError, errorRules } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import { toFlatRecord } from '../../translate/index.ts'
import {
  type BatchLimits,
  decodeReplyForm,
  type PartReply,
  type ReplyForm,
  type ReplyPartForm,
} from '../../v2/index.ts'
import type { Partner } from '../../partners/partner.ts'
import type { V3Record } from '../../v3/record.ts'
import { planWrites } from '../../writes/index.ts'
import type { Plan, PlannedRecord } from '../../writes/plan.ts'
import type { ComparedRecord } from '../compared-exchange.ts'
import type { OwnRules } from '../diff/index.ts'
import { type AssumedOutcome, assumeOutcome } from './assume-outcome.ts'
import { buildBatchReply, buildPart } from './build-reply.ts'
import { codesOf } from './compare-errors.ts'
import { comparePartForm } from './compare-part.ts'
import { compareEnvelopes } from './compare-envelopes.ts'
import { Findings, plainly } from './findings.ts'
import { factsOf, type FlatMark, isObject, noFacts } from './flat-mark.ts'
import type { MarkPlace } from './latest-marks.ts'
import { matchParts } from './match-parts.ts'
import { fieldOf, type OfferedWrite } from './offered-exchange.ts'
import { plainBody } from './plain-body.ts'
import { compareBodies, readBody } from './reply-bodies.ts'
import type { SkipReason } from './skip-reason.ts'

/** A record that V2 accepted, and the mark that it says it has now. */
export interface AcceptedMark {
  readonly record: V3Record
  /** V2's flat record; undefined: its reply had none. */
  readonly mark: FlatMark | undefined
  readonly place: MarkPlace
}

export type ReplyResult =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | {
      readonly kind: 'compared'
      readonly records: readonly ComparedRecord[]
      readonly accepted: readonly AcceptedMark[]
      /** Records of a batch whose reply shows no outcomes (batch-wire 3). */
      readonly hidden: readonly Omit<AcceptedMark, 'mark'>[]
    }

export interface ReplyComparison {
  readonly limits: () => BatchLimits
  readonly open: () => Slices
  /** The partner's own rules. */
  readonly rulesOf: (partner: Partner) => OwnRules | undefined
  /** Larger replies are skipped. Default 1 MiB. */
  readonly maxReplyBytes?: number
}

/** A larger reply would be read for too long at once. */
const MAX_REPLY_BYTES = 1_048_576
/** The cost of comparing a record, in bytes of a batch. */
const COMPARE_WORK = 8_192

/**
 * Decodes and translates what V2 was sent as if V3 had been sent it, builds the reply that the adapter would have given, and sets it
 * against V2's, record by record. Nothing is sent.
 */
export async function compareReply(
  offered: OfferedWrite,
  places: readonly MarkPlace[],
  { limits, open, rulesOf, maxReplyBytes = MAX_REPLY_BYTES }: ReplyComparison,
): Promise<ReplyResult> {
  const { body, client, receivedMs, request, reply } = offered
  if (body === undefined) return { kind: 'skipped', reason: 'tooLarge' }
  const slices = open()
  const plan = await planOrRefusal(() =>
    planWrites(request, body, client.partner, receivedMs, limits(), slices),
  )
  if (plan instanceof AdapterError) return compareRefusals(reply.status, plan)
  // What V2 refuses as a whole says nothing of the records.
  if (request.kind === 'batch' && reply.status >= 400) return { kind: 'skipped', reason: 'refused' }
  if (plan.records.length === 0) return { kind: 'skipped', reason: 'empty' }
  const plain = await plainBody(reply)
  if (!Buffer.isBuffer(plain)) return { kind: 'skipped', reason: plain }
  if (plain.length > maxReplyBytes) return { kind: 'skipped', reason: 'tooLarge' }
  const form =
    request.kind === 'record' ? asForm(offered, plain) : readForm(plain, fieldOf(reply, 'content-type'))
  if (form === undefined) return { kind: 'skipped', reason: 'form' }
  return compareForms({ offered, plan, form, places, rules: rulesOf(client.partner), slices })
}

interface Forms {
  readonly offered: OfferedWrite
  readonly plan: Plan
  readonly form: ReplyForm
  readonly places: readonly MarkPlace[]
  readonly rules: OwnRules | undefined
  readonly slices: Slices
}

async function compareForms({ offered, plan, form, places, rules, slices }: Forms): Promise<ReplyResult> {
  const { request, reply, receivedMs } = offered
  const { parts, extra } = matchParts(plan.records, plan.outcomesShown ? form.parts : [])
  const judged: Judged[] = []
  for (const [index, planned] of plan.records.entries()) {
    const part = parts[index]
    const body = part === undefined ? undefined : readBody(part.form.body)
    const outcome = assumeOutcome(planned, part?.form ?? { status: 0 }, unwrapped(body), receivedMs)
    judged.push({ planned, part, body, outcome, built: buildPart(planned, outcome, request) })
    if (slices.spend(COMPARE_WORK)) await slices.next()
  }
  // A record of which nothing is known still has its place in the reply.
  const asWritten = judged.map(({ built, planned }) => built ?? emptyPart(planned))
  const built = await buildBatchReply(plan, request, asWritten, slices)
  const whole = new Findings(rules)
  if (request.kind === 'batch')
    compareEnvelopes(
      { status: reply.status, contentType: fieldOf(reply, 'content-type'), form },
      built,
      whole,
    )
  const records: ComparedRecord[] = []
  const accepted: AcceptedMark[] = []
  const hidden: Omit<AcceptedMark, 'mark'>[] = []
  // Parts would be outcomes.
  const isHidden = !plan.outcomesShown && form.parts.length === 0
  for (const [index, own] of judged.entries()) {
    const place = places[index] ?? { isCorrection: false, isSuperseded: () => false }
    const findings = new Findings(rules)
    findings.add(whole.comparison())
    records.push({
      ...judge(own, plan, built.form.parts[index], request.kind === 'batch', rules, findings),
      ...factsOf(markOf(own), { isCorrection: place.isCorrection, errorCodes: codesOf(own.body) }),
    })
    const { record } = own.planned
    const isAccepted = plan.outcomesShown && own.outcome.kind === 'accepted'
    if (isAccepted && record !== undefined) accepted.push({ record, mark: answeredMark(own), place })
    if (isHidden && record !== undefined) hidden.push({ record, place })
    if (slices.spend(COMPARE_WORK)) await slices.next()
  }
  for (let count = 0; count < extra; count += 1) records.push({ ...plainly('onlyV2'), ...noFacts })
  return { kind: 'compared', records, accepted, hidden }
}

interface Judged {
  readonly planned: PlannedRecord
  readonly part: { readonly form: ReplyPartForm; readonly isInOrder: boolean } | undefined
  readonly body: unknown
  readonly outcome: AssumedOutcome
  readonly built: PartReply | undefined
}

function judge(
  { part, body, outcome, built }: Judged,
  { outcomesShown }: Plan,
  builtForm: ReplyPartForm | undefined,
  isBatch: boolean,
  rules: OwnRules | undefined,
  findings: Findings,
): Pick<ComparedRecord, 'verdict' | 'differences' | 'equivalences'> {
  // A single 200 for all (batch-wire 3): only its form can be compared.
  if (!outcomesShown) {
    findings.equal('no-outcome-shown', 'part')
    return findings.comparison()
  }
  if (part === undefined) return plainly('onlyV3')
  if (built === undefined || builtForm === undefined) return plainly('unknown')
  if (isBatch) comparePartForm(part.form, builtForm, findings)
  else if (part.form.status !== built.status)
    findings.differ('reply/status', 'value', `status:${part.form.status}`, `status:${built.status}`)
  if (!part.isInOrder) findings.differ('part/order', 'order', 'order:other', 'order:posted')
  // The body of another status says another thing.
  if (part.form.status === built.status) compareBodies(body, readBody(built.json), rules, findings)
  for (const { rule, path } of outcome.equivalences) findings.equal(rule, path)
  return findings.comparison()
}

async function planOrRefusal(plan: () => Promise<Plan>): Promise<Plan | AdapterError> {
  try {
    return await plan()
  } catch (cause) {
    if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return cause
    throw cause
  }
}

/** Both sides refuse the request as a whole, or the adapter alone does. */
function compareRefusals(v2Status: number, refusal: AdapterError): ReplyResult {
  const findings = new Findings()
  if (v2Status === refusal.status) findings.equal('refused-whole', 'reply/status')
  else findings.differ('reply/status', 'value', `status:${v2Status}`, `status:${refusal.status}`)
  return { kind: 'compared', records: [{ ...findings.comparison(), ...noFacts }], accepted: [], hidden: [] }
}

/** Undefined: it is not a batch reply. */
function readForm(body: Buffer, contentType: string | undefined): ReplyForm | undefined {
  try {
    return decodeReplyForm(body, contentType)
  } catch (cause) {
    if (cause instanceof AdapterError) return undefined
    throw cause
  }
}

/** The reply to a single record as the one part of a reply. */
function asForm({ reply }: OfferedWrite, body: Buffer): ReplyForm {
  const part = { changeset: undefined, mime: [], status: reply.status, reason: '', http: [] }
  return { changesets: 0, parts: [{ ...part, body: body.toString('utf8').trim() }] }
}

function emptyPart({ answering }: PlannedRecord): PartReply {
  const { contentId, contentIdInHttp, changeset } = answering
  return { contentId, contentIdInHttp, changeset, status: 204, json: undefined }
}

/** The record of a body without the envelope of OData V2. */
function unwrapped(body: unknown): unknown {
  return isObject(body) && isObject(body['d']) ? body['d'] : body
}

function answeredMark({ body }: Judged): FlatMark | undefined {
  const mark = unwrapped(body)
  return isObject(mark) ? mark : undefined
}

const isTaken = ({ part }: Judged): boolean =>
  part !== undefined && part.form.status >= 200 && part.form.status < 300

/** What was posted, with what V2 says of it. */
function markOf(own: Judged): FlatMark {
  const { record } = own.planned
  return {
    ...(record === undefined ? {} : toFlatRecord(record)),
    // Also what the adapter would have refused: V2 took it.
    ...(isTaken(own) ? answeredMark(own) : {}),
  }
}
