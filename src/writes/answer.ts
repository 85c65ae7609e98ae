import { AdapterError } from '../errors.ts'
import type { BeginResult, KnownBatch, NewBatch, NewRecord } from '../journal/index.ts'
import { isDamagedBatch } from '../journal/store-error.ts'
import type { Authorisation } from '../partners/partner.ts'
import type { PartReply } from '../v2/index.ts'
import type { WriteContext } from './context.ts'
import { identityOf, type Plan, type PlannedRequest, redate } from './plan.ts'
import { isReadBack } from './resolve-unknown.ts'
import { resultLost, replayRelayed, type SentToV2 } from './relayed-reply.ts'
import { rejectReplay, replayBatch } from './replay.ts'
import {
  type Answered,
  encodeAnswer,
  mayBeApplied,
  type OpenReply,
  type ReplyContext,
  toFaultPart,
  toSupersededPart,
} from './reply.ts'
import { runRecords } from './run.ts'
import { createReplyIds, encodeStoredRequest, type StoredRequest } from './stored-request.ts'
import { openWriteSession } from './write-session.ts'

/** The cost of one record and of the reply part of one faulty record, as the number of batch bytes whose decoding takes as long. */
const RECORD_WORK = 64
const FAULT_WORK = 4_096
/** Takes the place of the digest and the payload in a journal that is not durable, because such a journal reads neither. */
const NOTHING = new Uint8Array(0)

/** Maps positions to the reply parts of records that are not sent, because they have faults or a newer record superseded them. */
type RefusedParts = ReadonlyMap<number, PartReply>

/**
 * Makes a write request durable, posts its records, and settles and answers each record. A resent request is answered from the journal
 * (product contract 3). This request has applied nothing if the function throws `ADP_JOURNAL_UNAVAILABLE` or `ADP_JOURNAL_DAMAGED`, or
 * `ADP_TOKEN` or `ADP_FORBIDDEN` because V3 denied the credentials. Throws `ADP_OUTCOME_UNKNOWN` if an earlier copy of the batch may have
 * been applied and its result is not available now.
 *
 * Calls `expectCurrent` immediately before the batch becomes durable. That may be long after receipt, because a resent batch waits for its
 * earlier copies. The callback throws if another instance may meanwhile send the writes of this client to V2.
 */
export async function answerWrites(
  context: WriteContext,
  authorisation: Authorisation,
  planned: PlannedRequest,
  openReply: OpenReply,
  expectCurrent: () => void,
): Promise<Answered> {
  const { partner, client } = authorisation
  const { request, plan } = planned
  const replyId = context.newId()
  const replyContext = { ...request, newId: context.newId }
  const isDropped = !plan.outcomesShown && partner.mismatch === 'drop'
  const { durable } = context.journal
  const identity = durable
    ? await identityOf(authorisation.owner, context.upstream, planned)
    : { owner: authorisation.owner, ids: undefined, content: NOTHING, receivedMs: planned.receivedMs }
  const faults = await toFaultParts(planned, replyContext)
  let sentToV2: SentToV2 | undefined
  let refused: RefusedParts = faults
  const stored = (): StoredRequest => ({
    request,
    replyId,
    sender: authorisation.identity.credentialsHash,
    markedAtMs: sentToV2 && (sentToV2.receivedMs ?? planned.receivedMs),
    together: partner.batch?.maxRecords ?? 1,
    body: planned.body,
  })
  const begin = async (): Promise<BeginResult> => {
    const batch: NewBatch = {
      ...identity,
      replacesBatch: sentToV2?.batch,
      partner: partner.id,
      credentials: JSON.stringify(client),
      newcomer: !context.accepted.queueKey(authorisation).isAccepted(),
      records: toNewRecords(plan, refused, isDropped),
      payload: durable ? await encodeStoredRequest(stored(), planned.slices) : NOTHING,
    }
    expectCurrent()
    return context.journal.begin(batch).catch((cause: unknown) => {
      // The damaged row may belong to an earlier copy that was applied, so the error must not say that nothing was applied.
      if (isDamagedBatch(cause)) rejectReplay(cause)
      throw cause
    })
  }
  let begun = await begin()
  while (begun.kind === 'known') {
    const before = begun
    const { newer = [] } = before
    // A batch that V2 received before must not overwrite newer marks, so this request first waits until the newer records have ended.
    if (newer.length > 0 && !(await context.predecessors.until(newer, partner.budgetMs)))
      throw waitsForNewer()
    const found = await answerKnown(context, authorisation, planned, before, openReply)
    if (found !== undefined && 'tally' in found) return found
    // `found` is `undefined` if the batch was purged while this request waited.
    sentToV2 = found
    refused = found === undefined ? faults : withSuperseded(found, plan, faults, replyContext)
    begun = await begin()
    if (begun.kind === 'new' || begun.batch !== before.batch) continue
    if (begun.newer === undefined) throw resultLost()
    // Gives up if `newer` still lists records after the wait, because they are open or unknown. If `newer` is empty, newer marks were
    // confirmed, so one more round finds the records that they superseded. Gives up if `newer` was empty in the round before too, because
    // the loop might otherwise never end.
    if (before.newer !== undefined && (begun.newer.length > 0 || before.newer.length === 0))
      throw waitsForNewer()
  }
  const { batch, lease, after, receivedMs } = begun
  if (begun.idsReused) context.events.batchIdsReused({ partner: partner.id })
  context.accepted.setSender(batch, client)
  const session = openWriteSession(context, authorisation, batch, { wasOnV2: sentToV2 !== undefined })
  const reply = openReply(request, createReplyIds(replyId), () => session.timing())
  for (const [position, part] of refused) reply.setPart(position, part)
  const run = {
    batch,
    lease,
    receivedMs,
    plan: redate(plan, sentToV2?.receivedMs ?? receivedMs),
    positions: isDropped ? [] : [...plan.records.keys()].filter((position) => !refused.has(position)),
    after,
    mayBeApplied: (position: number) => mayBeApplied(sentToV2?.records[position]),
    // Reads V3 before posting, because the journal may lack the keys of a batch that V2 received, and may therefore not know newer marks.
    isChecked: sentToV2 !== undefined && isReadBack(partner),
    isNew: true,
    clientWaits: true,
    replyContext,
  }
  const tally = await runRecords(context, session, run, reply)
  if (tally.unknown === 0 && tally.notApplied === 0) context.accepted.forgetSender(batch)
  await reply.end()
  const dropped = isDropped ? plan.records.length - refused.size : 0
  return {
    tally: { ...tally, refused: tally.refused + refused.size, notApplied: tally.notApplied + dropped },
    queuedMs: session.queuedMs(),
    replayed: false,
    askedV3: true,
    batch,
  }
}

/**
 * Answers a known batch from the journal. If the batch was sent to V2 and no reply of V2 can be returned, returns the state of the batch on
 * V2, so that V3 serves the batch now. Returns `undefined` if the batch is no longer stored.
 */
async function answerKnown(
  context: WriteContext,
  authorisation: Authorisation,
  planned: PlannedRequest,
  known: KnownBatch,
  openReply: OpenReply,
): Promise<Answered | SentToV2 | undefined> {
  if (known.side === undefined)
    return replayBatch(context, authorisation, known.batch, openReply, planned.slices)
  return replayRelayed(context, authorisation, planned, known).catch(rejectReplay)
}

const waitsForNewer = (): AdapterError =>
  new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    'A newer mark for a learner and event of this batch is in progress, or its outcome is unknown. This copy was not sent. Resend the same batch later to get the result.',
  )

async function toFaultParts(
  { plan, slices }: PlannedRequest,
  replyContext: ReplyContext,
): Promise<RefusedParts> {
  const parts = new Map<number, PartReply>()
  for (const [position, record] of plan.records.entries()) {
    if (record.faults !== undefined) parts.set(position, toFaultPart(record, replyContext))
    if (slices.spend(record.faults === undefined ? RECORD_WORK : FAULT_WORK)) await slices.next()
  }
  return parts
}

/** Returns the reply parts of all records that are not sent: records with faults, and records that a newer record superseded. */
function withSuperseded(
  sentToV2: SentToV2,
  { records }: Plan,
  faults: RefusedParts,
  context: ReplyContext,
): RefusedParts {
  const parts = new Map(faults)
  for (const [position, record] of records.entries()) {
    const sent = sentToV2.records[position]
    if (sent?.superseded === true && !faults.has(position))
      parts.set(position, toSupersededPart(record, context, mayBeApplied(sent)))
  }
  return parts
}

function toNewRecords({ records }: Plan, refused: RefusedParts, isDropped: boolean): readonly NewRecord[] {
  return records.map(({ key }, position) => {
    const part = refused.get(position)
    if (part !== undefined) return { key: '', refused: { answer: encodeAnswer(part), reason: 'fault' } }
    return isDropped ? { key: '', refused: { answer: undefined, reason: 'dropped' } } : { key }
  })
}
