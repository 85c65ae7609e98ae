import type { Slices } from '../http/slices.ts'
import { AdapterError } from '../errors.ts'
import {
  type BatchIdentity,
  type BeginResult,
  type FoundBatch,
  isDamagedBatch,
  type NewBatch,
  type NewRecord,
  type RecordRef,
} from '../journal/index.ts'
import type { Authorisation } from '../partners/partner.ts'
import type { PartReply } from '../v2/index.ts'
import type { WriteContext } from './context.ts'
import { type Plan, redate } from './plan.ts'
import { isReadBack } from './read-back.ts'
import { replayBatch, toReplayError } from './replay.ts'
import { forgotten, type ReplayedRelay, replayRelayed } from './relayed/replay-relayed.ts'
import {
  type ReplyContext,
  replyContextOf,
  toFaultPart,
  toSupersededPart,
  toSupersededUnknownPart,
} from './reply-part.ts'
import type { Answered, OpenReply } from './reply.ts'
import { runForClient } from './run.ts'
import { encodeAnswer } from './stored-answer.ts'
import {
  createReplyIds,
  digestIds,
  digestRequest,
  encodeStoredRequest,
  type WriteRequest,
} from './stored-request.ts'
import { openWriteSession } from './write-session.ts'

/** A write request that was read and planned. */
export interface PlannedRequest {
  readonly request: WriteRequest
  readonly body: Buffer
  readonly receivedMs: number
  readonly plan: Plan
  readonly slices: Slices
}

/**
 * Journals a write request, posts its records, settles and answers each; a request that came before is answered from the
 * journal (product contract 3). Errors, with nothing sent: `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`, `ADP_TOKEN` and
 * `ADP_FORBIDDEN` when V3 denied the credentials. `ADP_OUTCOME_UNKNOWN` where the journal may have kept the batch, or may know
 * it and cannot read what it keeps.
 */
export async function answerWrites(
  context: WriteContext,
  authorisation: Authorisation,
  planned: PlannedRequest,
  openReply: OpenReply,
): Promise<Answered> {
  const { request, plan, slices } = planned
  const replyId = context.newId()
  const replyContext = replyContextOf(request, context.newId)
  const isDropped = !plan.outcomesShown && authorisation.partner.mismatch === 'drop'
  const faults = new Map<number, PartReply>()
  for (const [position, record] of plan.records.entries()) {
    if (record.faults !== undefined) faults.set(position, toFaultPart(record, replyContext))
    if (slices.spend(record.faults === undefined ? RECORD_WORK : FAULT_WORK)) await slices.next()
  }
  const toBatch = (parts: ReadonlyMap<number, PartReply>, lost?: LostRelay): Promise<NewBatch> =>
    toNewBatch(context, authorisation, planned, { replyId, faults: parts, isDropped, lost })
  const batch = await toBatch(faults)
  let begun = await unlessDamaged(context.journal.begin(batch))
  let lost: LostRelay | undefined
  let refused: ReadonlyMap<number, PartReply> = faults
  while (begun.kind === 'known') {
    const before: Extract<BeginResult, { kind: 'known' }> = begun
    await untilEnded(context, before.newer, authorisation.partner.budgetMs)
    const found = await answerKnown(context, authorisation, planned, before, openReply)
    if (found !== undefined && 'tally' in found) return found
    // Without an answer it was purged meanwhile.
    lost = found
    refused = lost === undefined ? faults : withSuperseded(lost, plan, faults, replyContext)
    begun = await unlessDamaged(
      context.journal.begin(lost === undefined ? batch : await toBatch(refused, lost)),
    )
    if (begun.kind === 'new' || begun.batch !== before.batch) continue
    if (begun.newer === undefined) throw forgotten()
    // The newer records stay unknown, or there are others by now.
    if (before.newer !== undefined && begun.newer.length > 0) throw waitsForNewer()
  }
  if (begun.idsReused) context.events.batchIdsReused({ partner: authorisation.partner.id })
  context.accepted.sends(begun.batch, authorisation.client)
  const session = openWriteSession(context, authorisation, begun.batch, { wasOnV2: lost !== undefined })
  const reply = openReply(request, createReplyIds(replyId), () => session.timing())
  for (const [position, part] of refused) reply.settle(position, part)
  const tally = await runForClient(context, session, reply, {
    batch: begun.batch,
    lease: begun.lease,
    receivedMs: begun.receivedMs,
    plan: redate(plan, planned.receivedMs, lost?.receivedMs ?? begun.receivedMs),
    positions: isDropped ? [] : [...plan.records.keys()].filter((position) => !refused.has(position)),
    after: begun.after,
    mayHaveLeft: lost?.mayHaveLeft ?? (() => false),
    // Where the keys of what V2 was sent are not kept, only V3 shows what is newer.
    isChecked: lost !== undefined && isReadBack(authorisation.partner),
    isNew: true,
    clientWaits: true,
    replyContext,
  })
  if (tally.unknown === 0 && tally.notApplied === 0) context.accepted.finished(begun.batch)
  await reply.end()
  const dropped = isDropped ? plan.records.length - refused.size : 0
  return {
    tally: { ...tally, refused: tally.refused + refused.size, notApplied: tally.notApplied + dropped },
    queuedMs: session.queuedMs(),
    replayed: false,
    askedV3: true,
    batch: begun.batch,
  }
}

/** A batch that V2 was sent, and whose reply is not kept. */
type LostRelay = Extract<ReplayedRelay, { kind: 'lost' }> & { readonly batch: number }

/**
 * The parts of records that are not sent, with those that are not sent again: newer ones were confirmed since, or stand in the same batch. V2 was sent all of
 * these at once, so its mark of the last one hides those of the others from every read.
 */
function withSuperseded(
  { superseded, mayHaveLeft }: LostRelay,
  { records }: Plan,
  faults: ReadonlyMap<number, PartReply>,
  context: ReplyContext,
): ReadonlyMap<number, PartReply> {
  const parts = new Map(faults)
  const lastOf = new Map(
    records.flatMap(({ key, faults: own }, position) => (own === undefined ? [[key, position]] : [])),
  )
  for (const [position, record] of records.entries()) {
    if (faults.has(position)) continue
    const isHidden = mayHaveLeft(position) && lastOf.get(record.key) !== position
    if (!isHidden && !superseded(position)) continue
    const toPart = mayHaveLeft(position) ? toSupersededUnknownPart : toSupersededPart
    parts.set(position, toPart(record, context))
  }
  return parts
}

/** Waits for newer records of keys of a batch that V2 was sent: whether they are applied decides whether older ones still may be. */
async function untilEnded(
  { predecessors }: WriteContext,
  newer: readonly RecordRef[] = [],
  budgetMs: number,
): Promise<void> {
  if (newer.length > 0 && !(await predecessors.until(newer, budgetMs))) throw waitsForNewer()
}

const waitsForNewer = (): AdapterError =>
  new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    'A newer mark of a learner and event of this batch is being sent, or its outcome is not known yet. Send the same batch again later for its answer.',
  )

/** Answers a batch that came before: with what is kept of it, or of V2's reply. Undefined: it is not kept any longer. */
async function answerKnown(
  context: WriteContext,
  authorisation: Authorisation,
  { plan, slices }: PlannedRequest,
  { batch, side, earlier = [], isCut = false }: FoundBatch,
  openReply: OpenReply,
): Promise<Answered | LostRelay | undefined> {
  if (side === undefined) return replayBatch(context, authorisation, batch, openReply, slices)
  try {
    const before = { batches: [batch, ...earlier], isCut }
    const relayed = await replayRelayed(context, authorisation, plan, before, slices)
    if (relayed.kind === 'lost') return { ...relayed, batch }
    return { tally: relayed.tally, queuedMs: 0, replayed: true, askedV3: false, batch, kept: relayed.reply }
  } catch (cause) {
    throw toReplayError(cause)
  }
}

/** The cost of listing a record for the journal, in bytes of a batch. */
const RECORD_WORK = 64
/** The cost of the answer to a record that is refused, in bytes of a batch. */
const FAULT_WORK = 4_096
const NOTHING = new Uint8Array(0)

/** How a request becomes a batch of the journal. */
interface BatchForm {
  readonly replyId: string
  readonly faults: ReadonlyMap<number, PartReply>
  readonly isDropped: boolean
  /** Its place is taken. */
  readonly lost: LostRelay | undefined
}

async function toNewBatch(
  context: WriteContext,
  authorisation: Authorisation,
  planned: PlannedRequest,
  { replyId, faults, isDropped, lost }: BatchForm,
): Promise<NewBatch> {
  const { partner, client, identity } = authorisation
  const { request, body, plan, slices } = planned
  const toNewRecord = (key: string, position: number): NewRecord => {
    const fault = faults.get(position)
    if (fault !== undefined) return { key: '', refused: { answer: encodeAnswer(fault), reason: 'fault' } }
    return isDropped ? { key: '', refused: { answer: undefined, reason: 'dropped' } } : { key }
  }
  const markedAtMs = lost === undefined ? undefined : (lost.receivedMs ?? planned.receivedMs)
  const stored = { request, replyId, sender: identity.credentialsHash, markedAtMs, body }
  return {
    ...(await identityOf(context, authorisation, planned)),
    instead: lost?.batch,
    partner: partner.id,
    credentials: JSON.stringify(client),
    newcomer: !context.queueKeys.of(authorisation).isAccepted(),
    records: plan.records.map(({ key }, position) => toNewRecord(key, position)),
    payload: context.journal.durable ? await encodeStoredRequest(stored, slices) : NOTHING,
  }
}

/** The digests that the journal knows a request by. */
async function identityOf(
  { journal, upstream }: WriteContext,
  { owner }: Authorisation,
  { body, plan, receivedMs, slices }: PlannedRequest,
): Promise<BatchIdentity> {
  if (!journal.durable) return { owner, ids: undefined, content: NOTHING, receivedMs }
  const ids = plan.ids === undefined ? undefined : digestIds(owner, plan.ids)
  const content = await digestRequest(owner, upstream, plan.ids?.boundary, body, slices)
  return { owner, ids, content, receivedMs }
}

/** The row of a batch with the same ids may be damaged: then this one may have come before. */
async function unlessDamaged<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked
  } catch (cause) {
    throw isDamagedBatch(cause) ? toReplayError(cause) : cause
  }
}
