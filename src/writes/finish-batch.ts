import * as z from 'zod'

import { errorRules } from '../errors.ts'
import type { ReopenResult, Settled, StoredBatch } from '../journal/index.ts'
import { isDamagedBatch } from '../journal/store-error.ts'
import type { BatchTally } from '../observability/events.ts'
import { BoundedMap } from '../partners/bounded-map.ts'
import { isSameCredentials } from '../partners/credentials.ts'
import type { Authorisation, Partner } from '../partners/partner.ts'
import { toV2Failure, v2ErrorRules } from '../translate/index.ts'
import { encodeErrorArray } from '../v2/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import { markOrphaned } from './active-records.ts'
import type { WriteContext } from './context.ts'
import { planAgain } from './plan.ts'
import { encodeAnswer, mayHaveLeft } from './reply.ts'
import { isReadBack } from './resolve-unknown.ts'
import { inOrder, runRecords, type RunSession, settleOutcomes } from './run.ts'
import { retryDeadlineMs, unsentOutcome } from './settlement-policy.ts'
import { readSending, wasOnV2 } from './stored-request.ts'
import { openWriteSession, type SessionOptions, type WriteSession } from './write-session.ts'

/** A batch to finish: these of its records, which are due, or its orphans. */
export interface Work {
  readonly batch: number
  readonly positions: readonly number[] | undefined
}

/** The thing that a batch cannot be finished without: credentials of a client, or its partner in the configuration. */
type Missing = 'credentials' | 'partner'

/** A batch that waits for the thing that is missing. */
export interface Waiting {
  readonly missing: Missing
  readonly partner: string
  readonly owner: string
  /** The hash of the credentials of the batch's request. */
  readonly sender: string | undefined
  /** See `StoredRequest`. */
  readonly together: number | undefined
  /** Until when it waits, ms since the epoch. */
  readonly untilMs: number
}

/** Authorises a stored batch of a partner, with the credentials of its client if some are known; or names the missing part. */
export type AuthoriseStored = (
  partner: string,
  client: V3Credentials | undefined,
) => Promise<Authorisation> | Missing

/**
 * The time for which a lost write of a partner is read back, ms, where so many records may have been sent together, at most `together` of
 * them in one `$batch`.
 */
export type ReadBackMs = (partner: string, missing?: number, together?: number) => number

/** Finishes a batch without its client. `early`: it is to be tried again; `later`: after a rest. A batch that has to wait for something is named with it. */
type FinishBatch = (work: Work) => Promise<'done' | 'early' | 'later' | Waiting>

/**
 * Why a record is not retried: this version cannot read its request, its rows are damaged, or until the deadline of retries there were no credentials
 * of its partner, no such partner in the configuration, or no token for it.
 */
type DeadLetterReason = 'unreadable' | 'damaged' | 'noCredentials' | 'noPartner' | 'noToken'

/** Many read-backs may run at a time, since they mostly wait; the pool and the rate limit bound the calls. */
const RECORDS_AT_A_TIME = 256
/** Credentials of one batch that V3 denied, at most, and batches of which they are remembered: of others they are tried once more. */
const MAX_DENIED = 8
const MAX_DENIED_BATCHES = 10_000

const credentialsSchema = z.object({ authorization: z.string(), subscriptionKey: z.string() })

/** A batch with the authorisation to finish it, or the reason why it becomes a dead letter. */
interface Prepared {
  readonly stored: StoredBatch
  readonly authorisation: Authorisation | Exclude<DeadLetterReason, 'unreadable' | 'damaged'>
}

/**
 * Creates the finisher. A batch goes with the credentials that it came with, where they are kept and as long as V3 accepts
 * them, else with others of its owner that V3 has accepted, or with the very ones that it came with once a client shows them
 * again; never with those of another owner. Without credentials it waits for its client, until the deadline of retries.
 */
export function createFinisher(
  context: WriteContext,
  authorise: AuthoriseStored,
  readBackMs: ReadBackMs,
): FinishBatch {
  const { journal, orphans, accepted } = context
  /** Credentials that V3 denied, by batch. */
  const denied = new BoundedMap<number, readonly V3Credentials[]>(MAX_DENIED_BATCHES)

  /** Partners that there was no token for; true while one batch of theirs asks again: the others leave their turns to other partners. */
  const tokenless = new Map<string, boolean>()
  const noteToken = async (partner: string, authorised: Promise<Authorisation>): Promise<Authorisation> => {
    const isAgain = tokenless.has(partner)
    if (isAgain) tokenless.set(partner, true)
    try {
      const authorisation = await authorised
      tokenless.delete(partner)
      return authorisation
    } catch (cause) {
      if (isAgain || !tokenless.has(partner)) tokenless.set(partner, false)
      throw cause
    }
  }
  /** The credentials that a batch may be finished with; those that V3 has not denied for it come first. */
  const credentialsFor = (
    { batch, owner, credentials }: StoredBatch,
    sender: string | undefined,
  ): V3Credentials | undefined => {
    const shown = sender === undefined ? undefined : accepted.withHash(sender)
    const known = [readCredentials(credentials), accepted.senderOf(batch), shown, ...accepted.of(owner)]
    const candidates = known.filter((one) => one !== undefined)
    const refused = denied.get(batch) ?? []
    return candidates.find((one) => !refused.some((other) => isSameCredentials(one, other))) ?? candidates[0]
  }
  /** The authorisation to finish a batch, or what is missing that may still come. */
  const prepare = async (stored: StoredBatch): Promise<Prepared | Waiting | 'later'> => {
    const { partner, owner } = stored
    const untilMs = retryDeadlineMs(stored.receivedMs)
    const isLate = context.nowMs() >= untilMs
    if (!isLate && tokenless.get(partner) === true) return 'later'
    const { sender, together } = readSending(stored.payload)
    const authorised = authorise(partner, credentialsFor(stored, sender))
    if (typeof authorised !== 'string') {
      const noted = noteToken(partner, authorised)
      const authorisation = await (isLate ? noted.catch(() => 'noToken' as const) : noted)
      return { stored, authorisation }
    }
    if (isLate) return { stored, authorisation: authorised === 'partner' ? 'noPartner' : 'noCredentials' }
    return { missing: authorised, partner, owner, sender, together, untilMs }
  }
  const finishNow = async (
    { stored, authorisation }: Prepared,
    opened: ReopenResult,
    sinceMs?: number,
  ): Promise<'done' | 'later'> => {
    const { batch, partner } = stored
    if (typeof authorisation === 'string') {
      await endOpened(context, stored, opened, authorisation)
      return 'done'
    }
    let session: WriteSession | undefined
    const background = { concurrency: RECORDS_AT_A_TIME, sinceMs }
    const openSession = (how: SessionOptions): WriteSession =>
      (session = openWriteSession(context, authorisation, batch, { ...how, background }))
    const storedRun = { partner: authorisation.partner, clientWaits: false, openSession }
    const tally = await runStored(context, stored, storedRun, opened)
    if (session === undefined) return 'done'
    if (session.denied())
      denied.set(batch, [authorisation.client, ...(denied.get(batch) ?? [])].slice(0, MAX_DENIED))
    else denied.delete(batch)
    context.events.recovered({ ...tally, partner })
    return tally.reason === 'stillExecuting' ? 'later' : 'done'
  }
  const finish = (prepared: Prepared, opened: ReopenResult, sinceMs?: number): Promise<'done' | 'later'> => {
    const work = (): Promise<'done' | 'later'> => finishNow(prepared, opened, sinceMs)
    return context.traceWork?.('recovery', { partner: prepared.stored.partner }, work) ?? work()
  }
  /**
   * Ends orphans of a batch that V2 was sent, once a lost write would not be read back any longer: V2 may have applied them, and nothing
   * of them is ever posted. Their client has no answer and may send the batch again.
   */
  const endRelayed = async (stored: StoredBatch): Promise<'done' | 'early'> => {
    const { batch, partner } = stored
    const orphan = orphans.get(batch)
    if (orphan === undefined) return 'done'
    if (context.clock.nowMs() < orphan.sinceMs + readBackMs(partner)) return 'early'
    const { lease, after } = stillOpen(stored, orphan)
    const end = { state: 'unknown', answer: undefined, reason: 'stopped', retry: 'resend' } as const
    await settleOutcomes(
      context,
      { batch, lease },
      [...after.keys()].map((position) => ({ position, ...end })),
    )
    orphans.delete(batch)
    return 'done'
  }
  const work: FinishBatch = async ({ batch, positions }) => {
    const stored = await journal.load(batch)
    if (stored === undefined) {
      // It is past its retention period.
      orphans.delete(batch)
      return 'done'
    }
    if (stored.side === 'v2') return endRelayed(stored)
    const ready = await prepare(stored)
    if (ready === 'later' || 'missing' in ready) return ready
    if (positions !== undefined) return finish(ready, await journal.reopen(batch, positions, undefined))
    const orphan = orphans.get(batch)
    if (orphan === undefined) return 'done'
    // A record that cannot be finished becomes an orphan again.
    orphans.delete(batch)
    return finish(ready, stillOpen(ready.stored, orphan), orphan.sinceMs)
  }
  return async (next) => {
    try {
      return await work(next)
    } catch (cause) {
      if (!isDamagedBatch(cause)) throw cause
      // A later attempt cannot read it either.
      const { batch, positions } = next
      const opened =
        positions === undefined ? orphans.get(batch) : await journal.reopen(batch, positions, undefined)
      if (opened?.after.size === 0) throw cause
      // Nothing of it can be read, not even its partner.
      if (opened !== undefined)
        await endOpened(context, { batch, partner: undefined, records: undefined }, opened, 'damaged')
      orphans.delete(batch)
      context.events.recoveryFailed({ code: 'ADP_JOURNAL_DAMAGED' })
      return 'done'
    }
  }
}

/** How records of a stored batch are run. */
interface StoredRun {
  readonly partner: Partner
  /** Records that were not applied wait for their client to send them again, where it gets that answer. */
  readonly clientWaits: boolean
  readonly openSession: (how: Pick<SessionOptions, 'wasOnV2' | 'together'>) => RunSession
}

/**
 * Runs records of a stored batch that were opened. Those that this version cannot read become dead letters.
 */
export async function runStored(
  context: WriteContext,
  stored: StoredBatch,
  { partner, clientWaits, openSession }: StoredRun,
  opened: ReopenResult,
): Promise<BatchTally & { readonly records: number }> {
  const { batch, receivedMs, records } = stored
  const { lease, after, unknown } = opened
  const planned = await planAgain(stored, partner, context.slicing.open())
  const isReadable = (position: number): boolean => planned?.plan.records[position]?.record !== undefined
  const unreadable = new Map([...after].filter(([position]) => !isReadable(position)))
  await endOpened(context, stored, { lease, after: unreadable }, 'unreadable')
  const positions = inOrder(after.keys()).filter(isReadable)
  if (planned === undefined || positions.length === 0)
    return { accepted: 0, refused: 0, notApplied: 0, unknown: 0, records: 0 }
  const { request, plan } = planned
  const isOld = wasOnV2(request)
  const { together } = request
  const tally = await runRecords(context, openSession({ wasOnV2: isOld, together }), {
    batch,
    lease,
    receivedMs,
    plan,
    positions,
    after,
    unknown,
    mayHaveLeft: (position) => mayHaveLeft(records[position]),
    // While the journal could not be reached, on this instance or another, V2 may have been given newer marks: it is kept from nothing then.
    isChecked: (isOld || partner.v2 !== undefined) && isReadBack(partner),
    clientWaits,
    replyContext: { ...request.request, newId: context.newId },
  })
  return { ...tally, records: positions.length }
}

/** Those of the records that are open still, each with the older ones that it waits for. */
function stillOpen({ records }: StoredBatch, { lease, after }: ReopenResult): ReopenResult {
  return { lease, after: new Map([...after].filter(([position]) => records[position]?.state === 'open')) }
}

function readCredentials(text: string | undefined): V3Credentials | undefined {
  if (text === undefined) return undefined
  const result = credentialsSchema.safeParse(JSON.parse(text))
  return result.success ? result.data : undefined
}

/** A batch as it was before its records were opened. Undefined partner: not known, so it is not counted for one. */
interface Ended {
  readonly batch: number
  readonly partner: string | undefined
  /** Undefined: they cannot be read. */
  readonly records: StoredBatch['records'] | undefined
}

/**
 * Ends opened records that cannot be sent: they are dead letters, whose remedies `markbridge journal` shows. One that may have
 * left stays unknown; nobody has judged any other. Those that the journal cannot keep become orphans again. Errors: those
 * of `Journal.settle`.
 */
async function endOpened(
  context: WriteContext,
  { batch, partner, records }: Ended,
  { lease, after }: ReopenResult,
  reason: DeadLetterReason,
): Promise<void> {
  if (after.size === 0) return
  const outcomes = [...after.keys()].map((position): Settled => {
    if (records === undefined)
      return { position, state: 'unknown', answer: undefined, reason, deadLetter: true }
    const isUnknown = mayHaveLeft(records[position])
    // As for a part of a reply, which takes its ids from the request: that may not be there to be read.
    const outcome = unsentOutcome(isUnknown ? 'readBack' : 'post', 'unavailable')
    const { status, errors } = toV2Failure(outcome, v2ErrorRules)
    const answer = encodeAnswer({ status, json: encodeErrorArray(errors, context.newId()) })
    return { position, state: isUnknown ? 'unknown' : 'notApplied', answer, reason, deadLetter: true }
  })
  try {
    await endRecords(context, { batch, partner, lease }, outcomes)
  } catch (cause) {
    markOrphaned(context.orphans, batch, after, lease, context.clock.nowMs())
    throw cause
  }
}

/**
 * Ends open records that cannot be finished and that newer records of their keys wait for: they stay unknown and are never
 * posted again. Errors: those of `Journal.settle`.
 */
export async function deadLetterSuperseded(
  context: WriteContext,
  whose: Pick<Ended, 'batch' | 'partner'> & { readonly lease: number },
  positions: readonly number[],
): Promise<void> {
  const code = 'ADP_SUPERSEDED_UNKNOWN'
  const message =
    'A newer mark of this learner and event took the place of this one, which could not be finished without credentials of its client. Whether it was applied before is not known.'
  const outcomes = positions.map((position): Settled => {
    const json = encodeErrorArray([{ code, message }], context.newId())
    const answer = encodeAnswer({ status: errorRules[code].status, json })
    return { position, state: 'unknown', answer, reason: 'gaveWay', superseded: true, deadLetter: true }
  })
  await endRecords(context, whose, outcomes)
}

async function endRecords(
  context: WriteContext,
  { batch, partner, lease }: Pick<Ended, 'batch' | 'partner'> & { readonly lease: number },
  outcomes: readonly Settled[],
): Promise<void> {
  await settleOutcomes(context, { batch, lease }, outcomes)
  if (partner === undefined) return
  const records = outcomes.length
  const unknown = outcomes.filter(({ state }) => state === 'unknown').length
  const tally = { accepted: 0, refused: 0, notApplied: records - unknown, unknown }
  context.events.recovered({ partner, records, ...tally })
}
