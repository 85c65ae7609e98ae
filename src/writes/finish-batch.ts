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
import { encodeAnswer, mayBeApplied } from './reply.ts'
import { isReadBack } from './resolve-unknown.ts'
import { inOrder, runRecords, type RunSession, settleOutcomes } from './run.ts'
import { retryDeadlineMs, unsentOutcome } from './settlement-policy.ts'
import { readSending, wasOnV2 } from './stored-request.ts'
import { openWriteSession, type SessionOptions, type WriteSession } from './write-session.ts'

/** A batch to finish. `positions` lists its due records, or is `undefined` if its orphans are to be finished. */
export interface Work {
  readonly batch: number
  readonly positions: readonly number[] | undefined
}

/** The prerequisites that a batch may lack: credentials of a client, or a section of its partner in the configuration. */
type Missing = 'credentials' | 'partner'

export interface Waiting {
  readonly missing: Missing
  readonly partner: string
  readonly owner: string
  readonly sender: string | undefined
  /** The maximum number of records in one `$batch` (see `StoredRequest`). If `undefined`, the current setting of the partner applies. */
  readonly together: number | undefined
  readonly untilMs: number
}

/** Authorises a stored batch with the credentials `client` (`undefined` if none are known), or returns the missing prerequisite. */
export type AuthoriseStored = (
  partner: string,
  client: V3Credentials | undefined,
) => Promise<Authorisation> | Missing

/** Returns for how long a lost write is read back, in milliseconds. At most `together` of the `missing` records share one `$batch`. */
export type ReadBackMs = (partner: string, missing?: number, together?: number) => number

/**
 * Finishes a batch without its client. Returns `early` if it is too early to end the batch, so that the next search must find the batch
 * again, `later` if the batch must rest before the next attempt, or the prerequisite that the batch waits for.
 */
type FinishBatch = (work: Work) => Promise<'done' | 'early' | 'later' | Waiting>

/** Why a record becomes a dead letter. `noCredentials`, `noPartner` (no configuration) and `noToken` apply after the retry deadline. */
type DeadLetterReason = 'unreadable' | 'damaged' | 'noCredentials' | 'noPartner' | 'noToken'

/** Maximum number of records of a batch finished at a time. High, because read-backs mostly wait and the rate limit bounds the calls. */
const RECORDS_AT_A_TIME = 256
/**
 * Maximum number of denied credentials to remember per batch, and of batches with denied credentials. Evicted credentials are tried once
 * more.
 */
const MAX_DENIED = 8
const MAX_DENIED_BATCHES = 10_000

const credentialsSchema = z.object({ authorization: z.string(), subscriptionKey: z.string() })

interface Prepared {
  readonly stored: StoredBatch
  readonly authorisation: Authorisation | Exclude<DeadLetterReason, 'unreadable' | 'damaged'>
}

/**
 * Creates the function that finishes batches. A batch uses the stored credentials that it arrived with, if V3 accepts them. Otherwise the
 * batch uses other credentials of its owner that V3 has accepted, or the same credentials once a client sends them again. A batch never
 * uses credentials of another owner. Without credentials the batch waits for its client until the retry deadline.
 */
export function createFinisher(
  context: WriteContext,
  authorise: AuthoriseStored,
  readBackMs: ReadBackMs,
): FinishBatch {
  const { journal, orphans, accepted } = context
  const denied = new BoundedMap<number, readonly V3Credentials[]>(MAX_DENIED_BATCHES)

  /**
   * Partners whose last token request failed. The value is true while one batch repeats the request. The partner's other batches then wait.
   */
  const tokenless = new Map<string, boolean>()
  const trackToken = async (partner: string, authorised: Promise<Authorisation>): Promise<Authorisation> => {
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
  /** Returns credentials to finish a batch, or `undefined` if none are known. Prefers credentials that V3 has not denied for the batch. */
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
  const prepare = async (stored: StoredBatch): Promise<Prepared | Waiting | 'later'> => {
    const { partner, owner } = stored
    const untilMs = retryDeadlineMs(stored.receivedMs)
    const isLate = context.nowMs() >= untilMs
    if (!isLate && tokenless.get(partner) === true) return 'later'
    const { sender, together } = readSending(stored.payload)
    const authorised = authorise(partner, credentialsFor(stored, sender))
    if (typeof authorised !== 'string') {
      const tracked = trackToken(partner, authorised)
      const authorisation = await (isLate ? tracked.catch(() => 'noToken' as const) : tracked)
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
   * Ends the orphans of a batch that was sent to V2, once the time to read back a lost write is over. V2 may have applied these records, so
   * the adapter never posts them. Their client has no reply and may resend the batch.
   */
  const endRelayed = async (stored: StoredBatch): Promise<'done' | 'early'> => {
    const { batch, partner } = stored
    const orphan = orphans.get(batch)
    if (orphan === undefined) return 'done'
    if (context.clock.nowMs() < orphan.sinceMs + readBackMs(partner)) return 'early'
    const { lease, after } = stillOpen(stored, orphan)
    const ended = { state: 'unknown', answer: undefined, reason: 'stopped', retry: 'resend' } as const
    await settleOutcomes(
      context,
      { batch, lease },
      [...after.keys()].map((position) => ({ position, ...ended })),
    )
    orphans.delete(batch)
    return 'done'
  }
  const work: FinishBatch = async ({ batch, positions }) => {
    const stored = await journal.load(batch)
    if (stored === undefined) {
      // The batch was purged, because its retention period is over.
      orphans.delete(batch)
      return 'done'
    }
    if (stored.side === 'v2') return endRelayed(stored)
    const prepared = await prepare(stored)
    if (prepared === 'later' || 'missing' in prepared) return prepared
    if (positions !== undefined) return finish(prepared, await journal.reopen(batch, positions, undefined))
    const orphan = orphans.get(batch)
    if (orphan === undefined) return 'done'
    // The run that starts here marks each record that it cannot finish as an orphan again.
    orphans.delete(batch)
    return finish(prepared, stillOpen(prepared.stored, orphan), orphan.sinceMs)
  }
  return async (next) => {
    try {
      return await work(next)
    } catch (cause) {
      if (!isDamagedBatch(cause)) throw cause
      // Ends the records of the damaged batch now, because no later attempt could read the batch.
      const { batch, positions } = next
      const opened =
        positions === undefined ? orphans.get(batch) : await journal.reopen(batch, positions, undefined)
      if (opened?.after.size === 0) throw cause
      // The batch cannot be read, so its partner and the earlier states of its records are unknown.
      if (opened !== undefined)
        await endOpened(context, { batch, partner: undefined, records: undefined }, opened, 'damaged')
      orphans.delete(batch)
      context.events.recoveryFailed({ code: 'ADP_JOURNAL_DAMAGED' })
      return 'done'
    }
  }
}

interface StoredRun {
  readonly partner: Partner
  /** True if a client waits for the reply and resends records that were not applied. */
  readonly clientWaits: boolean
  readonly openSession: (how: Pick<SessionOptions, 'wasOnV2' | 'together'>) => RunSession
}

/** Posts or reads back the opened records of a stored batch. Records that this version cannot read become dead letters. */
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
    mayBeApplied: (position) => mayBeApplied(records[position]),
    // Reads V3 before posting, because the journal may lack newer marks that an instance sent to V2 while it could not reach the journal.
    isChecked: (isOld || partner.v2 !== undefined) && isReadBack(partner),
    clientWaits,
    replyContext: { ...request.request, newId: context.newId },
  })
  return { ...tally, records: positions.length }
}

function stillOpen({ records }: StoredBatch, { lease, after }: ReopenResult): ReopenResult {
  return { lease, after: new Map([...after].filter(([position]) => records[position]?.state === 'open')) }
}

function readCredentials(text: string | undefined): V3Credentials | undefined {
  if (text === undefined) return undefined
  const result = credentialsSchema.safeParse(JSON.parse(text))
  return result.success ? result.data : undefined
}

/** A batch whose records end. If `partner` is `undefined` because the batch cannot be read, the records count for no partner. */
interface Ended {
  readonly batch: number
  readonly partner: string | undefined
  /** The records as they were before they were opened, or `undefined` if they cannot be read. */
  readonly records: StoredBatch['records'] | undefined
}

/**
 * Ends opened records that cannot be sent. The records become dead letters, for which `markbridge journal` shows remedies. A record that
 * may have been sent stays unknown; the other records were not applied. If the outcomes cannot be stored, the records become orphans again.
 * Throws the errors of `Journal.settle`.
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
    const isUnknown = mayBeApplied(records[position])
    // The ids of a reply part normally derive from the stored request. That request may be unreadable here, so the part gets a new id.
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
 * Ends orphans that delay newer records of the same keys. The orphans become unknown dead letters, and the adapter never posts them.
 * Throws the errors of `Journal.settle`.
 */
export async function deadLetterSuperseded(
  context: WriteContext,
  whose: Pick<Ended, 'batch' | 'partner'> & { readonly lease: number },
  positions: readonly number[],
): Promise<void> {
  const code = 'ADP_SUPERSEDED_UNKNOWN'
  const message =
    'A newer mark for this learner and event replaced this mark, which could not be finished without credentials of its client. It is unknown whether this mark was applied before. Do not resend it.'
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
