import { AdapterError, type ErrorCode } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { ReopenResult, StoredBatch, StoredRecord } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import type { PartReply } from '../v2/index.ts'
import { isSameCredentials } from '../partners/accepted-credentials.ts'
import type { WriteContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import { checkToken } from './check-token.ts'
import { mayHaveLeft } from './dead-letter.ts'
import { markOrphaned } from './orphans.ts'
import { type Plan, type PlannedRecord, planStored } from './plan.ts'
import type { OpenReply, Reply } from './reply.ts'
import { type Answered, runForClient } from './run.ts'
import type { WriteTask } from './post-records.ts'
import { openWriteSession, type WriteSession } from './write-session.ts'
import { toReplyPart, type ReplyContext, toSupersededPart, replyContextOf } from './reply-part.ts'
import { createReplyIds, decodeStoredRequest, type StoredRequest } from './stored-request.ts'
import { toTasks } from './tasks.ts'
import { decodeAnswer } from './settlement-policy.ts'

/**
 * Answers a batch that came before: with the stored parts, byte for byte; while it is still running, with each part as it
 * becomes known. Records that were not applied are sent again, those whose outcome is unknown are looked for again. "Not
 * applied" is said only of records that no background will post. Resolves undefined when it is not there any longer. Errors:
 * `ADP_OUTCOME_UNKNOWN` when the other sender takes longer than the budget, and when the journal cannot be asked or is damaged: the
 * batch may have been applied; those of `checkToken`.
 */
export async function replayBatch(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Answered | undefined> {
  try {
    return await answerStored(context, authorisation, batch, openReply, slices)
  } catch (cause) {
    throw toReplayError(cause)
  }
}

/** The error of a repeated batch whose journal entry cannot be read: its records may have been applied, so it is never 503. */
export function toReplayError(cause: unknown): unknown {
  if (!(cause instanceof AdapterError)) return cause
  const text = unreadable[cause.code]
  if (text === undefined) return cause
  return new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    `This batch came before and may have been applied, ${text}`,
    {
      cause,
      details: cause.details,
    },
  )
}

const unreadable: Partial<Record<ErrorCode, string>> = {
  ADP_JOURNAL_UNAVAILABLE: 'and the journal cannot be asked now. Send the same batch again for its answer.',
  ADP_JOURNAL_DAMAGED:
    'and what the journal keeps of it is damaged, so nothing is answered from it. Nothing was sent again. Look up in the service what became of its records.',
}

async function answerStored(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Answered | undefined> {
  const { journal, clock } = context
  const { partner, client } = authorisation
  const deadlineMs = clock.nowMs() + partner.budgetMs
  const session = openWriteSession(context, authorisation, batch)
  let stored = await load(context, batch)
  if (stored === undefined) return undefined
  const { request, replyId } = stored.request
  const plan = await planStored(stored.request, partner, stored.receivedMs, slices)
  const reply = openReply(request, createReplyIds(replyId), () => session.timing())
  /** Records that were to be opened again once: what others do with them then is their answer. */
  const tried = new Set<number>()
  const isRetryable = (record: StoredRecord): boolean =>
    !tried.has(record.position) && isWorthAnother(record, plan)
  /** True once the service has judged this token for the batch. */
  let isChecked = false
  let hasAsked = false
  for (;;) {
    isChecked ||= await checkToken(context, authorisation, stored, plan)
    const open = stored.records.filter(({ state }) => state === 'open')
    const isFinal = (record: StoredRecord): boolean => !isHeld(record) && !isRetryable(record)
    await settleFinal(stored, plan, reply, isFinal, slices)
    const again = open.length === 0 ? stored.records.filter(isRetryable) : []
    if (open.length === 0 && again.length === 0) break
    if (again.length > 0) {
      for (const { position } of again) tried.add(position)
      const before = stored
      const positions = again.map(({ position }) => position)
      const reopened = await journal.reopen(batch, positions, toKeep(context, authorisation, stored))
      stored = (await load(context, batch)) ?? stored
      if (reopened.after.size === 0) continue
      context.accepted.sends(batch, client)
      try {
        isChecked ||= await checkToken(context, authorisation, stored, plan)
      } catch (cause) {
        markOrphaned(context.orphans, batch, reopened.after, reopened.lease, clock.nowMs())
        throw cause
      }
      // What others took meanwhile is answered when they have settled it.
      await settleFinal(stored, plan, reply, (record) => !isHeld(record), slices)
      await resume(context, authorisation, { before, stored, plan, reopened, reply, session, slices })
      isChecked = true
      stored = (await load(context, batch)) ?? stored
      continue
    }
    const leftMs = deadlineMs - clock.nowMs()
    const next = open
      .slice(0, Math.ceil(open.length * SHARE_AT_A_TIME))
      .map(({ position }) => ({ batch, position }))
    const patienceMs = hasAsked ? leftMs : Math.min(leftMs, ASK_AFTER_MS)
    const ended = leftMs > 0 && (await context.predecessors.until(next, patienceMs))
    if (!ended && patienceMs < leftMs) {
      hasAsked = true
      if (isChecked) await askForOrphan(context, batch, client)
    } else if (!ended)
      throw new AdapterError(
        'ADP_OUTCOME_UNKNOWN',
        'The same batch is still being sent, and its records may be applied. Send it again later for its answer.',
      )
    stored = await load(context, batch)
    if (stored === undefined)
      throw new AdapterError('ADP_JOURNAL_LOST', 'The batch is not kept any longer. Send it again.')
  }
  await settleParts(stored, stored.records, plan, reply, slices)
  await reply.end()
  return { tally: tallyOf(stored.records), queuedMs: session.queuedMs(), replayed: true, batch }
}

/**
 * The credentials that the journal keeps from now on: those of an owner whom the service knows, or any where it has none.
 * Others may be wrong, and must not take the place of those that the batch came with.
 */
function toKeep(
  { accepted, verdicts }: WriteContext,
  { owner, client, identity }: Authorisation,
  { batch, credentials }: StoredBatch,
): string | undefined {
  const isKnown =
    verdicts.isAccepted(batch, identity) || accepted.of(owner).some((one) => isSameCredentials(one, client))
  return isKnown || credentials === undefined ? JSON.stringify(client) : undefined
}

/** A batch that is not finished by then may be in an instance that has no credentials for it. */
const ASK_AFTER_MS = 1_000

/** Asks for a batch that another instance may be unable to finish, with credentials that the service accepted for it. */
async function askForOrphan(
  { journal, accepted, active, orphans }: WriteContext,
  batch: number,
  client: Authorisation['client'],
): Promise<void> {
  if (active.has(batch) || orphans.has(batch)) return
  accepted.sends(batch, client)
  await journal.askFor(batch)
}

/** A batch is read anew once this share of its open records has ended: parts come soon, and large ones are read a few times. */
const SHARE_AT_A_TIME = 1 / 16

interface Loaded extends StoredBatch {
  readonly request: StoredRequest
}

async function load(context: WriteContext, batch: number): Promise<Loaded | undefined> {
  const stored = await context.journal.load(batch)
  return stored?.payload === undefined
    ? undefined
    : { ...stored, request: decodeStoredRequest(stored.payload) }
}

/**
 * True for a record that was not applied, or may not have been, as long as no newer one took its place. Of a batch whose
 * client was told that all is well, only those that were denied together with it: its client was told of that.
 */
function isWorthAnother({ position, state, retry, superseded }: StoredRecord, plan: Plan): boolean {
  // What another version let in and this one cannot read is left to the background, which gives it up.
  if (superseded || plan.records[position]?.record === undefined) return false
  return retry === 'resend' || (plan.outcomesShown && retry !== undefined && state !== 'confirmed')
}

/** True for a record that the background may still post or find: it is open, or due at some time. */
function isHeld({ state, retry, superseded }: StoredRecord): boolean {
  return state === 'open' || (typeof retry === 'number' && !superseded)
}

interface Resumed {
  /** The batch before its records were opened again, and after that. */
  readonly before: Loaded
  readonly stored: Loaded
  readonly plan: Plan
  readonly reopened: ReopenResult
  readonly reply: Reply
  readonly session: WriteSession
  readonly slices: Slices
}

/** Sends what was opened again, and answers it. */
async function resume(
  context: WriteContext,
  { partner }: Authorisation,
  { before, stored, plan, reopened, reply, session }: Resumed,
): Promise<void> {
  const { lease, after } = reopened
  const { batch, receivedMs, request } = stored
  const positions = [...after.keys()].sort((one, other) => one - other)
  const firstOf = firstOfAgain(before.records, isReadBackFirst(context))
  // Another run may have sent it between the two reads: then it was opened once more.
  const isUnchanged = (position: number): boolean =>
    stored.records[position]?.attempts === (before.records[position]?.attempts ?? 0) + 1
  await runForClient(context, partner, session, reply, {
    batch,
    lease,
    records: plan.records,
    tasks: toTasks(
      plan.records,
      positions,
      after,
      (position) => (isUnchanged(position) ? firstOf(position) : 'readBack'),
      (position, older) => context.predecessors.untilFirst({ batch, position }, older, partner.budgetMs),
    ),
    after,
    replyContext: replyContextOf(request.request, context.newId),
    followUp: { outcomesShown: plan.outcomesShown, clientWaits: true, receivedMs },
  })
}

/** `readBack` for a record that may have been applied when it was sent before, and for all where the journal may not know it. */
export function firstOfAgain(
  records: readonly StoredRecord[],
  isAll: boolean,
): (position: number) => WriteTask['first'] {
  return (position) => (isAll || mayHaveLeft(records[position]) ? 'readBack' : 'post')
}

/** True while the journal may have lost what was sent before. */
export const isReadBackFirst = ({ journal, nowMs }: Pick<WriteContext, 'journal' | 'nowMs'>): boolean =>
  nowMs() < journal.readBackUntilMs

/** Answers the records that `isFinal` chooses, and lets the reply begin when there are any. */
async function settleFinal(
  stored: Loaded,
  plan: Plan,
  reply: Reply,
  isFinal: (record: StoredRecord) => boolean,
  slices: Slices,
): Promise<void> {
  const final = stored.records.filter(isFinal)
  if (final.length === 0) return
  await settleParts(stored, final, plan, reply, slices)
  reply.begin()
}

const mayBePosted = { kind: 'unknown', reason: 'stillTried' } as const
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
  const texts = replyContextOf(request.request, createReplyIds(request.replyId))
  for (const record of records) {
    const planned = plan.records[record.position]
    if (planned === undefined) continue
    reply.settle(record.position, partOf(record, planned, texts))
    if (slices.spend(ANSWER_WORK)) await slices.next()
  }
}

function partOf(record: StoredRecord, planned: PlannedRecord, texts: ReplyContext): PartReply {
  // Told that it was not applied, its client would send it again for ever.
  if (record.superseded && (record.state === 'refused' || record.state === 'parked'))
    return toSupersededPart(planned, texts)
  // Its stored answer says that it was not applied; the background may post it at any time.
  if (record.state === 'parked' && isHeld(record)) return toReplyPart(planned, mayBePosted, texts)
  // Without an answer of its own a record was denied together with its whole batch.
  return decodeAnswer(planned, record) ?? toReplyPart(planned, neverSent, texts)
}

function tallyOf(records: readonly StoredRecord[]): BatchTally {
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  for (const { state, retry } of records) {
    if (state === 'confirmed') tally.accepted += 1
    else if (state === 'parked' || retry === 'resend') tally.notApplied += 1
    else if (state === 'refused') tally.refused += 1
    else tally.unknown += 1
  }
  return tally
}
