import { AdapterError, type ErrorCode } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { StoredBatch, StoredRecord } from '../journal/index.ts'
import { isSameCredentials } from '../partners/index.ts'
import type { Authorisation } from '../partners/partner.ts'
import { markOrphaned } from './active-records.ts'
import { checkToken } from './check-token.ts'
import type { WriteContext } from './context.ts'
import { type Plan, planStored } from './plan.ts'
import { isReadBack } from './read-back.ts'
import {
  type Answered,
  isHeld,
  isRetryable,
  mayHaveLeft,
  type OpenReply,
  type Reply,
  replyContextOf,
  settleStored,
  tallyOf,
} from './reply.ts'
import { inOrder, runRecords } from './run.ts'
import { createReplyIds, decodeStoredRequest, type StoredRequest, wasOnV2 } from './stored-request.ts'
import { openWriteSession, type WriteSession } from './write-session.ts'

/**
 * Answers a batch that came before: with the stored parts, byte for byte; while it is still running, with each part as it
 * becomes known. Records that were not applied are sent again, those whose outcome is unknown are read back again. "Not
 * applied" is answered only for records that recovery will not post. Resolves undefined when the batch is no longer kept.
 * Errors: `ADP_OUTCOME_UNKNOWN` when the other sender takes longer than the budget, and when the journal cannot be reached or
 * is damaged: the batch may have been applied; those of `checkToken`.
 */
export async function replayBatch(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Answered | undefined> {
  try {
    const replay = await openReplay(context, authorisation, batch, openReply, slices)
    return replay === undefined ? undefined : await answerReplay(replay)
  } catch (cause) {
    throw toReplayError(cause)
  }
}

/** The error of a repeated batch whose journal entry cannot be read: its records may have been applied, so it is never 503. */
export function toReplayError(cause: unknown): unknown {
  if (!(cause instanceof AdapterError)) return cause
  const text = unreadable[cause.code]
  if (text === undefined) return cause
  const message = `This batch came before and may have been applied, ${text}`
  return new AdapterError('ADP_OUTCOME_UNKNOWN', message, { cause, details: cause.details })
}

const unreadable: Partial<Record<ErrorCode, string>> = {
  ADP_JOURNAL_UNAVAILABLE: 'and the journal is unavailable. Send the same batch again for its answer.',
  ADP_JOURNAL_DAMAGED:
    'and its rows in the journal are damaged, so they cannot answer it. Nothing was sent again. Look its records up in the service.',
}

interface Loaded extends StoredBatch {
  readonly request: StoredRequest
}

/** One repeated request, from its stored batch to its reply. */
interface Replay {
  readonly context: WriteContext
  readonly authorisation: Authorisation
  readonly plan: Plan
  readonly session: WriteSession
  readonly reply: Reply
  readonly slices: Slices
  /** By the clock, ms. */
  readonly deadlineMs: number
  /** Records that this request has reopened once: their answer is then the outcome of other requests. */
  readonly tried: Set<number>
  /** The batch as it was read last. */
  stored: Loaded
  /** V3 has judged this token for the batch. */
  isChecked: boolean
  /** The instance that has the batch was asked to hand it over. */
  hasAsked: boolean
}

/** How long the other sender of a running batch may take before it is asked for the batch: it may lack credentials for it. */
const ASK_AFTER_MS = 1_000
/** A batch is read again once this share of its open records has ended: parts come soon, and large ones are read a few times. */
const SHARE_AT_A_TIME = 1 / 16

async function openReplay(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Replay | undefined> {
  const { partner } = authorisation
  const deadlineMs = context.clock.nowMs() + partner.budgetMs
  const stored = await load(context, batch)
  if (stored === undefined) return undefined
  const { request, replyId } = stored.request
  const session = openWriteSession(context, authorisation, batch, { wasOnV2: wasOnV2(stored.request) })
  const plan = await planStored(stored.request, partner, stored.receivedMs, slices)
  const reply = openReply(request, createReplyIds(replyId), () => session.timing())
  const progress = { stored, isChecked: false, hasAsked: false, tried: new Set<number>() }
  return { context, authorisation, plan, session, reply, slices, deadlineMs, ...progress }
}

/** Undefined: the other sender was denied, and nothing of the batch is kept. */
async function answerReplay(replay: Replay): Promise<Answered | undefined> {
  const { context, authorisation, plan, tried, reply, session, slices } = replay
  const isOpenAgain = (record: StoredRecord): boolean =>
    !tried.has(record.position) && isRetryable(record, plan)
  for (;;) {
    replay.isChecked ||= await checkToken(context, authorisation, replay.stored, plan)
    await settleFinal(replay, (record) => !isHeld(record) && !isOpenAgain(record))
    const { records } = replay.stored
    const open = records.filter(({ state }) => state === 'open')
    const retryable = open.length === 0 ? records.filter(isOpenAgain) : []
    if (open.length > 0) {
      if (!(await waitForOthers(replay, open))) return undefined
    } else if (retryable.length > 0) await sendAgain(replay, retryable)
    else break
  }
  const { stored } = replay
  await settleStored(stored.request, stored.records, plan, reply, slices)
  await reply.end()
  const answered = { tally: tallyOf(stored), queuedMs: session.queuedMs(), batch: stored.batch }
  return { ...answered, replayed: true, askedV3: tried.size > 0 }
}

/**
 * Waits until some of the records that another run has open have ended. False: the batch was forgotten before any part of it was given
 * out. Error: `ADP_OUTCOME_UNKNOWN` when that takes too long.
 */
async function waitForOthers(replay: Replay, open: readonly StoredRecord[]): Promise<boolean> {
  const { context, authorisation, deadlineMs, hasAsked, stored } = replay
  const { batch } = stored
  const leftMs = deadlineMs - context.clock.nowMs()
  const next = open
    .slice(0, Math.ceil(open.length * SHARE_AT_A_TIME))
    .map(({ position }) => ({ batch, position }))
  const timeoutMs = hasAsked ? leftMs : Math.min(leftMs, ASK_AFTER_MS)
  const ended = leftMs > 0 && (await context.predecessors.until(next, timeoutMs))
  if (!ended && timeoutMs < leftMs) {
    replay.hasAsked = true
    if (replay.isChecked) await askForOrphan(context, batch, authorisation.client)
  } else if (!ended)
    throw new AdapterError(
      'ADP_OUTCOME_UNKNOWN',
      'The same batch is still being sent, and its records may be applied. Send it again later for its answer.',
    )
  const now = await load(context, batch)
  if (now !== undefined) {
    replay.stored = now
    return true
  }
  if (open.length === stored.records.length) return false
  throw new AdapterError('ADP_JOURNAL_LOST', 'The batch is not kept any longer. Send it again.')
}

/** Opens records again, posts them or reads them back, and answers them. */
async function sendAgain(replay: Replay, records: readonly StoredRecord[]): Promise<void> {
  const { context, authorisation, plan, session, reply } = replay
  const { journal, accepted, orphans, clock } = context
  const before = replay.stored
  const { batch, receivedMs, request } = before
  const positions = records.map(({ position }) => position)
  for (const position of positions) replay.tried.add(position)
  const opened = await journal.reopen(batch, positions, toKeep(context, authorisation, before))
  replay.stored = (await load(context, batch)) ?? before
  if (opened.after.size === 0) return
  accepted.sends(batch, authorisation.client)
  try {
    replay.isChecked ||= await checkToken(context, authorisation, replay.stored, plan)
  } catch (cause) {
    markOrphaned(orphans, batch, opened.after, opened.lease, clock.nowMs())
    throw cause
  }
  const { records: now } = replay.stored
  // Another run may have sent it between the two reads: then it was opened once more.
  const wasSentMeanwhile = (position: number): boolean =>
    now[position]?.attempts !== (before.records[position]?.attempts ?? 0) + 1
  // Records that other requests have reopened are answered when those have settled them.
  await settleFinal(replay, (record) => !isHeld(record))
  try {
    const run = {
      batch,
      receivedMs,
      plan,
      lease: opened.lease,
      after: opened.after,
      positions: inOrder(opened.after.keys()),
      wasParked: (position: number) => before.records[position]?.state === 'parked',
      mayHaveLeft: (position: number) => wasSentMeanwhile(position) || mayHaveLeft(before.records[position]),
      isChecked: wasOnV2(request) && isReadBack(authorisation.partner),
      clientWaits: true,
      replyContext: replyContextOf(request.request, context.newId),
    }
    await runRecords(context, session, run, reply)
    replay.isChecked = true
  } catch (cause) {
    // Another instance has them now: their answer is what it makes of them. The client may know the answer to the others already.
    if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_LOST') throw cause
  }
  replay.stored = (await load(context, batch)) ?? replay.stored
}

/** Answers the records that `isFinal` chooses, and lets the reply begin when there are any. */
async function settleFinal(
  { stored, plan, reply, slices }: Replay,
  isFinal: (record: StoredRecord) => boolean,
): Promise<void> {
  const final = stored.records.filter(isFinal)
  if (final.length === 0) return
  await settleStored(stored.request, final, plan, reply, slices)
  reply.begin()
}

/**
 * The credentials that the journal keeps from now on: those of an owner that V3 knows, or any where it has none. Others may be
 * wrong, and must not replace those that the batch came with.
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

/** Asks for a batch that another instance may be unable to finish, with credentials that V3 accepted for it. */
async function askForOrphan(
  { journal, accepted, active, orphans }: WriteContext,
  batch: number,
  client: Authorisation['client'],
): Promise<void> {
  if (active.has(batch) || orphans.has(batch)) return
  accepted.sends(batch, client)
  await journal.askFor(batch)
}

async function load(context: WriteContext, batch: number): Promise<Loaded | undefined> {
  const stored = await context.journal.load(batch)
  return stored?.payload === undefined
    ? undefined
    : { ...stored, request: decodeStoredRequest(stored.payload) }
}
