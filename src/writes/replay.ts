import { AdapterError, type ErrorCode } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { StoredBatch, StoredRecord } from '../journal/index.ts'
import { isSameCredentials } from '../partners/credentials.ts'
import type { Authorisation } from '../partners/partner.ts'
import { markOrphaned } from './active-records.ts'
import { checkToken } from './check-token.ts'
import type { WriteContext } from './context.ts'
import { planStored } from './plan.ts'
import {
  type Answered,
  isPending,
  isRetryable,
  mayBeApplied,
  type OpenReply,
  settleStored,
  tallyOf,
} from './reply.ts'
import { resultLost } from './relayed-reply.ts'
import { isReadBack } from './resolve-unknown.ts'
import { inOrder, runRecords } from './run.ts'
import { createReplyIds, decodeStoredRequest, wasOnV2 } from './stored-request.ts'
import { openWriteSession } from './write-session.ts'

/**
 * Time in milliseconds after which a waiting resend asks the instance that has the batch to hand it over, because that instance may lack
 * credentials.
 */
const ASK_AFTER_MS = 1_000
/** The share of the open records that must end before a batch is read again, so that a large batch is read only a few times. */
const SHARE_AT_A_TIME = 1 / 16

/**
 * Answers a resent batch with its stored parts, byte for byte. While another request still posts the batch, sends the parts as they become
 * known. Posts records again that were not applied, and reads back records whose outcome is unknown. "Not applied" is answered only for
 * records that recovery will not post. Returns `undefined` if the batch is no longer stored. Throws `ADP_OUTCOME_UNKNOWN` if the other
 * request takes longer than the budget, or if the journal is unavailable or damaged, because the batch may have been applied. Also throws
 * the errors of `checkToken`.
 */
export function replayBatch(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Answered | undefined> {
  return replay(context, authorisation, batch, openReply, slices).catch(rejectReplay)
}

/** Rethrows `cause`. If the journal failed, throws `ADP_OUTCOME_UNKNOWN` instead of a 503, because the records may have been applied. */
export function rejectReplay(cause: unknown): never {
  if (!(cause instanceof AdapterError)) throw cause
  const text = unreadable[cause.code]
  if (text === undefined) throw cause
  const message = `This batch was received before and may have been applied, ${text}`
  throw new AdapterError('ADP_OUTCOME_UNKNOWN', message, { cause, details: cause.details })
}

const unreadable: Partial<Record<ErrorCode, string>> = {
  ADP_JOURNAL_UNAVAILABLE: 'but the journal is unavailable. Resend the same batch later to get the result.',
  ADP_JOURNAL_DAMAGED:
    'but its rows in the journal are damaged, so its result is lost. Check its records in the service.',
}

async function replay(
  context: WriteContext,
  authorisation: Authorisation,
  batch: number,
  openReply: OpenReply,
  slices: Slices,
): Promise<Answered | undefined> {
  const { journal, clock, orphans, accepted, predecessors } = context
  const { partner, client } = authorisation
  const deadlineMs = clock.nowMs() + partner.budgetMs
  const first = await journal.load(batch)
  if (first?.payload === undefined) return undefined
  let stored: StoredBatch = first
  const request = decodeStoredRequest(first.payload)
  const wasV2 = wasOnV2(request)
  const plan = await planStored(request, partner, first.receivedMs, slices)
  const { together } = request
  const session = openWriteSession(context, authorisation, batch, { wasOnV2: wasV2, together })
  const reply = openReply(request.request, createReplyIds(request.replyId), () => session.timing())
  /** Positions of the records that this request has reopened. A request reopens each record at most once, so that the request ends. */
  const tried = new Set<number>()
  let isChecked = false
  let hasAsked = false
  const reload = async (): Promise<boolean> => {
    const now = await journal.load(batch)
    if (now?.payload === undefined) return false
    stored = now
    return true
  }
  const check = async (): Promise<void> => {
    isChecked ||= await checkToken(context, authorisation, stored, plan)
  }
  const isOpenAgain = (record: StoredRecord): boolean =>
    !tried.has(record.position) && isRetryable(record, plan)
  /** Sets the stored reply parts of the records for which `isFinal` returns true, and lets the reply begin if there are any. */
  const settleFinal = async (isFinal: (record: StoredRecord) => boolean): Promise<void> => {
    const final = stored.records.filter(isFinal)
    if (final.length === 0) return
    await settleStored(request, final, plan, reply, slices)
    reply.begin()
  }
  /**
   * Waits until another run of the batch has ended some of its open records, then loads the batch again. After `ASK_AFTER_MS`, asks the
   * other instance once for the batch. Returns false if the batch was forgotten before any part was sent. Throws `ADP_OUTCOME_UNKNOWN` if
   * the budget has ended, and `ADP_RESULT_LOST` if the batch was erased later.
   */
  const waitForOthers = async (open: readonly StoredRecord[]): Promise<boolean> => {
    const leftMs = deadlineMs - clock.nowMs()
    const next = open
      .slice(0, Math.ceil(open.length * SHARE_AT_A_TIME))
      .map(({ position }) => ({ batch, position }))
    const timeoutMs = hasAsked ? leftMs : Math.min(leftMs, ASK_AFTER_MS)
    const ended = leftMs > 0 && (await predecessors.until(next, timeoutMs))
    if (!ended && timeoutMs >= leftMs)
      throw new AdapterError(
        'ADP_OUTCOME_UNKNOWN',
        'An earlier copy of this batch is still in progress. This copy was not sent. Resend the same batch later to get the result.',
      )
    if (!ended) {
      hasAsked = true
      if (isChecked) await askForOrphan(context, batch, client)
    }
    if (await reload()) return true
    if (open.length === stored.records.length) return false
    throw resultLost()
  }
  const sendAgain = async (positions: readonly number[]): Promise<void> => {
    const before = stored
    for (const position of positions) tried.add(position)
    const { lease, after, unknown } = await journal.reopen(
      batch,
      positions,
      credentialsToStore(context, authorisation, before),
    )
    await reload()
    if (after.size === 0) return
    accepted.setSender(batch, client)
    try {
      await check()
    } catch (cause) {
      markOrphaned(orphans, batch, after, lease, clock.nowMs())
      throw cause
    }
    const now = stored.records
    // `attempts` grows with each reopening. If it grew by more than one, another run may have sent the record between the two loads.
    const wasSentMeanwhile = (position: number): boolean =>
      now[position]?.attempts !== (before.records[position]?.attempts ?? 0) + 1
    // Answers what is final by now. Records that other requests have reopened are pending, and are answered once they are settled.
    await settleFinal((record) => !isPending(record))
    const run = {
      ...{ batch, lease, after, unknown, plan },
      receivedMs: before.receivedMs,
      positions: inOrder(after.keys()),
      wasParked: (position: number) => before.records[position]?.state === 'parked',
      mayBeApplied: (position: number) =>
        wasSentMeanwhile(position) || mayBeApplied(before.records[position]),
      isChecked: wasV2 && isReadBack(partner),
      clientWaits: true,
      replyContext: { ...request.request, newId: context.newId },
    }
    try {
      await runRecords(context, session, run, reply)
      isChecked = true
    } catch (cause) {
      // ADP_JOURNAL_LOST: another instance now works on the records. The reply may have begun, so the loop waits for their outcomes.
      if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_LOST') throw cause
    }
    await reload()
  }
  for (;;) {
    await check()
    await settleFinal((record) => !isPending(record) && !isOpenAgain(record))
    const open = stored.records.filter(({ state }) => state === 'open')
    const retryable = open.length === 0 ? stored.records.filter(isOpenAgain) : []
    if (open.length > 0) {
      if (!(await waitForOthers(open))) return undefined
    } else if (retryable.length > 0) await sendAgain(retryable.map(({ position }) => position))
    else break
  }
  await settleStored(request, stored.records, plan, reply, slices)
  await reply.end()
  const answered = { tally: tallyOf(stored), queuedMs: session.queuedMs(), batch }
  return { ...answered, replayed: true, askedV3: tried.size > 0 }
}

/** Returns the credentials to store, or `undefined` to keep those of the batch. Unverified credentials never replace stored credentials. */
function credentialsToStore(
  { accepted, verdicts }: WriteContext,
  { owner, client, identity }: Authorisation,
  { batch, credentials }: StoredBatch,
): string | undefined {
  const isKnown =
    verdicts.isAccepted(batch, identity) || accepted.of(owner).some((one) => isSameCredentials(one, client))
  return isKnown || credentials === undefined ? JSON.stringify(client) : undefined
}

/** Asks the instance that has the batch to hand it over. Must be called only if V3 accepted this client's credentials for the batch. */
async function askForOrphan(
  { journal, accepted, active, orphans }: WriteContext,
  batch: number,
  client: Authorisation['client'],
): Promise<void> {
  if (active.has(batch) || orphans.has(batch)) return
  accepted.setSender(batch, client)
  await journal.askFor(batch)
}
