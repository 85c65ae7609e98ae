import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import type { Opened, StoredBatch, StoredRecord } from '../../journal/index.ts'
import type { BatchTally } from '../../observability/events.ts'
import type { PartReply } from '../../v2/index.ts'
import type { ProxyContext } from '../context.ts'
import type { Authorisation } from '../partner.ts'
import { mayHaveLeft } from './give-up.ts'
import { type Plan, type PlannedRecord, planStored } from './plan.ts'
import type { OpenReply, Reply } from './reply-stream.ts'
import { type Answered, runForClient } from './run.ts'
import type { WriteTask } from './send.ts'
import { createSending, type Sending } from './sending.ts'
import { settleRecord, type SettleContext, settleSuperseded, toTexts } from './settle.ts'
import { createReplyIds, decodeStoredRequest, type StoredRequest } from './stored-request.ts'
import { toTasks } from './tasks.ts'
import { decodeAnswer } from './to-settled.ts'

/**
 * Answers a batch that came before: with the stored parts, byte for byte; while it is still running, with each part as it
 * becomes known. Records that were not applied are sent again, those whose outcome is unknown are looked for again.
 * Resolves undefined when it is not there any longer. Errors: `ADP_BUDGET_EXCEEDED` when the other sender takes longer than the
 * budget; those of `Journal.reopen`.
 */
export async function answerKnown(
  context: ProxyContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Answered | undefined> {
  const { journal, clock } = context
  const { partner, client } = authorisation
  const deadlineMs = clock.nowMs() + partner.budgetMs
  const sending = createSending(context, authorisation)
  let stored = await load(context, batch)
  if (stored === undefined) return undefined
  const { request, replyId } = stored.request
  const plan = await planStored(stored.request, partner, stored.receivedMs, slices)
  const reply = openReply(request, createReplyIds(replyId), () => sending.timing())
  for (;;) {
    const open = stored.records.filter(({ state }) => state === 'open')
    if (open.length === 0) {
      const again = stored.records.filter((record) => isWorthAnother(record, plan))
      const positions = again.map(({ position }) => position)
      const reopened =
        again.length === 0 ? undefined : await journal.reopen(batch, positions, JSON.stringify(client))
      if (reopened !== undefined && reopened.after.size > 0)
        return resume(context, authorisation, { stored, plan, reopened, reply, sending, slices })
      if (again.length > 0) stored = (await load(context, batch)) ?? stored
      if (stored.records.every(({ state }) => state !== 'open')) break
      continue
    }
    if (stored.records.some(({ state }) => state !== 'open')) await settleStored(stored, plan, reply, slices)
    const leftMs = deadlineMs - clock.nowMs()
    const next = open
      .slice(0, Math.ceil(open.length * SHARE_AT_A_TIME))
      .map(({ position }) => ({ batch, position }))
    const ended = leftMs > 0 && (await context.waiting.until(next, leftMs))
    if (!ended)
      throw new AdapterError(
        'ADP_BUDGET_EXCEEDED',
        'The same batch is still being sent. Nothing was sent twice; send it again later for its answer.',
      )
    stored = await load(context, batch)
    if (stored === undefined)
      throw new AdapterError('ADP_JOURNAL_LOST', 'The batch was withdrawn. Send it again.')
  }
  await settleStored(stored, plan, reply, slices)
  await reply.end()
  return { tally: tallyOf(stored.records), queuedMs: sending.queuedMs(), replayed: true, batch }
}

/** A batch is read anew once this share of its open records has ended: parts come soon, and large ones are read a few times. */
const SHARE_AT_A_TIME = 1 / 16

interface Loaded extends StoredBatch {
  readonly request: StoredRequest
}

async function load(context: ProxyContext, batch: number): Promise<Loaded | undefined> {
  const stored = await context.journal.load(batch)
  return stored?.payload === undefined
    ? undefined
    : { ...stored, request: decodeStoredRequest(stored.payload) }
}

/**
 * True for a record that was not applied, or may not have been, as long as no newer one took its place. Of a batch whose
 * client was told that all is well, only those that were denied together with it: its client was told of that.
 */
function isWorthAnother({ position, state, again, superseded }: StoredRecord, plan: Plan): boolean {
  // What another version let in and this one cannot read is left to the background, which gives it up.
  if (superseded || plan.records[position]?.record === undefined) return false
  return again === 'resend' || (plan.outcomesShown && again !== undefined && state !== 'confirmed')
}

interface Resumed {
  readonly stored: Loaded
  readonly plan: Plan
  readonly reopened: Opened
  readonly reply: Reply
  readonly sending: Sending
  readonly slices: Slices
}

/** Sends what was opened again, and answers the rest from the journal. */
async function resume(
  context: ProxyContext,
  { partner }: Authorisation,
  { stored, plan, reopened, reply, sending, slices }: Resumed,
): Promise<Answered> {
  const { lease, after } = reopened
  const { batch, receivedMs, request } = stored
  const rest = stored.records.filter(({ position }) => !after.has(position))
  await settleParts(stored, rest, plan, reply, slices)
  const positions = [...after.keys()].sort((one, other) => one - other)
  const tally = await runForClient(context, partner, sending, reply, {
    batch,
    lease,
    records: plan.records,
    tasks: toTasks(
      plan.records,
      positions,
      after,
      firstOfAgain(stored.records, isReadBackFirst(context)),
      (older) => context.waiting.until(older, partner.budgetMs),
    ),
    after,
    texts: toTexts(request.request, context.newId),
    followUp: { outcomesShown: plan.outcomesShown, clientWaits: true, receivedMs },
  })
  await reply.end()
  const before = tallyOf(rest)
  return {
    tally: {
      accepted: before.accepted + tally.accepted,
      refused: before.refused + tally.refused,
      notApplied: before.notApplied + tally.notApplied,
      unknown: before.unknown + tally.unknown,
    },
    queuedMs: sending.queuedMs(),
    replayed: true,
    batch,
  }
}

/** `readBack` for a record that may have been applied when it was sent before, and for all where the journal may not know it. */
export function firstOfAgain(
  records: readonly StoredRecord[],
  isAll: boolean,
): (position: number) => WriteTask['first'] {
  return (position) => (isAll || mayHaveLeft(records[position]) ? 'readBack' : 'post')
}

/** True while the journal may have lost what was sent before. */
export const isReadBackFirst = ({ journal, nowMs }: Pick<ProxyContext, 'journal' | 'nowMs'>): boolean =>
  nowMs() < journal.readBackUntilMs

async function settleStored(stored: Loaded, plan: Plan, reply: Reply, slices: Slices): Promise<void> {
  const settled = stored.records.filter(({ state }) => state !== 'open')
  await settleParts(stored, settled, plan, reply, slices)
  reply.begin()
}

const neverSent = { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined } as const

/** What a stored answer costs, in bytes of a batch. */
const ANSWER_WORK = 1_024

async function settleParts(
  { request }: Loaded,
  records: readonly StoredRecord[],
  plan: Plan,
  reply: Reply,
  slices: Slices,
): Promise<void> {
  // The same answer has the same ids.
  const texts = toTexts(request.request, createReplyIds(request.replyId))
  for (const record of records) {
    const planned = plan.records[record.position]
    if (planned === undefined) continue
    reply.settle(record.position, partOf(record, planned, texts))
    if (slices.spend(ANSWER_WORK)) await slices.next()
  }
}

function partOf(record: StoredRecord, planned: PlannedRecord, texts: SettleContext): PartReply {
  // Told that it was not applied, its client would send it again for ever.
  if (record.superseded && (record.state === 'refused' || record.state === 'parked'))
    return settleSuperseded(planned, texts)
  // Without an answer of its own a record was denied together with its whole batch.
  return decodeAnswer(planned, record) ?? settleRecord(planned, neverSent, texts)
}

function tallyOf(records: readonly StoredRecord[]): BatchTally {
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  for (const { state, again } of records) {
    if (state === 'confirmed') tally.accepted += 1
    else if (state === 'parked' || again === 'resend') tally.notApplied += 1
    else if (state === 'refused') tally.refused += 1
    else tally.unknown += 1
  }
  return tally
}
