import { AdapterError } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import { type BatchIdentity, isDamagedBatch, type NewRecord } from '../journal/index.ts'
import type { PartReply } from '../v2/index.ts'
import type { WriteContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import { replayBatch, isReadBackFirst, toReplayError } from './replay.ts'
import { type Plan, redate } from './plan.ts'
import type { OpenReply } from './reply.ts'
import { type Answered, runForClient } from './run.ts'
import { openWriteSession, overBudgetSeconds } from './write-session.ts'
import { toFaultPart, replyContextOf } from './reply-part.ts'
import {
  createReplyIds,
  digestIds,
  digestRequest,
  encodeStoredRequest,
  type WriteRequest,
} from './stored-request.ts'
import { toTasks } from './tasks.ts'
import { encodeAnswer } from './settlement-policy.ts'

/** A write request that was read and planned. */
export interface PlannedRequest {
  readonly request: WriteRequest
  readonly body: Buffer
  readonly receivedMs: number
  readonly plan: Plan
  readonly slices: Slices
}

/**
 * Journals a write request, sends its records and answers each; a request that came before is answered from the journal
 * (product contract 3). Errors, with nothing sent: `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`, `ADP_TOKEN` and
 * `ADP_FORBIDDEN` when the upstream denied the credentials. `ADP_OUTCOME_UNKNOWN` where the journal may have kept the batch, or may
 * know it and cannot read what it keeps.
 */
export async function answerWrites(
  context: WriteContext,
  authorisation: Authorisation,
  planned: PlannedRequest,
  openReply: OpenReply,
): Promise<Answered> {
  const { journal } = context
  const { partner, client, identity } = authorisation
  const { request, body, plan, slices } = planned
  const replyId = context.newId()
  const texts = replyContextOf(request, context.newId)
  const dropped = !plan.outcomesShown && partner.mismatch === 'drop'
  const faults = new Map<number, PartReply>()
  const records: NewRecord[] = []
  for (const record of plan.records) {
    if (record.faults === undefined) {
      const own = { key: record.key }
      records.push(dropped ? { key: '', refused: { answer: undefined, reason: 'dropped' } } : own)
      if (slices.spend(RECORD_WORK)) await slices.next()
      continue
    }
    const fault = toFaultPart(record, texts)
    faults.set(records.length, fault)
    records.push({ key: '', refused: { answer: encodeAnswer(fault), reason: 'fault' } })
    if (slices.spend(FAULT_WORK)) await slices.next()
  }
  const batch = {
    ...(await identityOf(context, authorisation, planned)),
    partner: partner.id,
    credentials: JSON.stringify(client),
    records,
    payload: journal.durable
      ? await encodeStoredRequest({ request, replyId, sender: identity.credentialsHash, body }, slices)
      : NOTHING,
  }
  let begun = await unlessDamaged(journal.begin(batch))
  while (begun.kind === 'known') {
    const answered = await replayBatch(context, authorisation, begun.batch, openReply, slices)
    if (answered !== undefined) return answered
    // It was withdrawn meanwhile: the journal had kept it after its client was told that it could not.
    const before = begun.batch
    begun = await unlessDamaged(journal.begin(batch))
    if (begun.kind === 'known' && begun.batch === before) throw forgotten()
  }
  if (begun.idsReused) context.events.batchIdsReused({ partner: partner.id })
  context.accepted.sends(begun.batch, client)
  const session = openWriteSession(context, authorisation, begun.batch)
  const reply = openReply(request, createReplyIds(replyId), () => session.timing())
  for (const [index, fault] of faults) reply.settle(index, fault)
  const { batch: number, receivedMs } = begun
  const dated = redate(plan, planned.receivedMs, receivedMs)
  const tasks = toTasks(
    dated.records,
    dropped ? [] : dated.records.keys(),
    begun.after,
    () => (isReadBackFirst(context) ? 'readBack' : 'post'),
    (position, older) =>
      context.predecessors.untilFirst({ batch: number, position }, older, partner.budgetMs),
  )
  const tally = await runForClient(context, partner, session, reply, {
    batch: begun.batch,
    lease: begun.lease,
    records: dated.records,
    tasks,
    after: begun.after,
    replyContext: texts,
    followUp: { outcomesShown: plan.outcomesShown, clientWaits: true, receivedMs },
  })
  if (tally.unknown === 0 && tally.notApplied === 0) context.accepted.finished(begun.batch)
  await reply.end()
  const refused = faults.size
  return {
    tally: {
      ...tally,
      refused: tally.refused + refused,
      notApplied: tally.notApplied + (dropped ? records.length - refused : 0),
    },
    queuedMs: session.queuedMs(),
    batch: begun.batch,
    replayed: false,
  }
}

/**
 * Answers a write request that came before, and none else: undefined for a new one, of which nothing is kept. Errors: those of
 * `answerKnown`, `ADP_JOURNAL_UNAVAILABLE`.
 */
export async function answerAgain(
  context: WriteContext,
  authorisation: Authorisation,
  planned: PlannedRequest,
  openReply: OpenReply,
): Promise<Answered | undefined> {
  const batch = await unlessDamaged(context.journal.find(await identityOf(context, authorisation, planned)))
  return batch === undefined
    ? undefined
    : replayBatch(context, authorisation, batch, openReply, planned.slices)
}

/** What listing a record for the journal costs, in bytes of a batch. */
const RECORD_WORK = 64
/** What the answer to a record that is refused costs, in bytes of a batch. */
const FAULT_WORK = 4_096
const NOTHING = new Uint8Array(0)

/** What the journal knows a request by. */
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

const forgotten = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_LOST',
    'This batch came before and may have been applied; its answer is not kept any longer. Nothing was sent again.',
  )

/**
 * The seconds after which a batch may come that cannot be finished within the budget now, for a partner that wants no such
 * batch begun; undefined: it is taken.
 */
export function secondsOverBudget(
  context: WriteContext,
  authorisation: Authorisation,
  plan: Plan,
): number | undefined {
  const records = plan.records.filter(({ record }) => record !== undefined).length
  return overBudgetSeconds(authorisation, context.v3.callsFor(records, authorisation.partner.batch))
}
