import { AdapterError, errorRules } from '../errors.ts'
import type { KnownBatch, StoredBatch, StoredRecord } from '../journal/index.ts'
import type { Authorisation, Client } from '../partners/partner.ts'
import { checkToken, hasRow } from './check-token.ts'
import type { WriteContext } from './context.ts'
import type { Plan, PlannedRequest } from './plan.ts'
import {
  decodeKeptReply,
  hadKeptReply,
  isFinalReply,
  type ReplyReading,
  statesOfParts,
} from './relayed-reply.ts'
import { type Answered, type KeptReply, mayHaveLeft, tallyOf } from './reply.ts'
import type { ReadMarkOfV2 } from './wait-for-older.ts'

/** What is known of a batch that V2 was sent, and that gave no reply to give again: V3 serves it in its place. */
export interface SentToV2 {
  /** The last number under which it was begun for V2. */
  readonly batch: number
  /** When the first of the requests came that V2 may have applied, or else the last of all; undefined: that is not kept any longer. */
  readonly receivedMs: number | undefined
  /** What became of each record, as of one that V3 was sent: `unknown` where V2 may have applied it. */
  readonly records: readonly Pick<StoredRecord, 'state' | 'superseded'>[]
}

/**
 * Waits for the requests to V2 with this batch that are under way, on whichever instance, and gives V2's reply: the last one, unless a later
 * request may have changed what it says. Errors: `ADP_OUTCOME_UNKNOWN` when they take longer than the budget; `ADP_JOURNAL_LOST` when the
 * reply was kept and is erased; those of `checkToken`; those of the journal.
 */
export async function replayRelayed(
  context: WriteContext,
  authorisation: Authorisation,
  { plan, slices }: Pick<PlannedRequest, 'plan' | 'slices'>,
  { batch, earlier = [], isCut = false }: Pick<KnownBatch, 'batch' | 'earlier' | 'isCut'>,
): Promise<Answered | SentToV2> {
  const deadlineMs = context.clock.nowMs() + authorisation.partner.budgetMs
  const count = plan.records.length
  const unanswered: (StoredBatch | undefined)[] = []
  // One after another: a reply may have megabytes.
  for (const number of [batch, ...earlier]) {
    const stored = await loadEnded(context, number, deadlineMs, 'ADP_OUTCOME_UNKNOWN')
    if (stored === undefined || !stored.records.some(hadKeptReply)) {
      unanswered.push(stored)
      continue
    }
    const reply = decodeKeptReply(stored.records[0]?.answer)
    // Where V2 did not take all of it, a later request may have been taken.
    const states = reply && (await statesOfParts(reply, { slices }))
    const isTakenWhole = states?.length === count && states.every((state) => state === 'confirmed')
    if (unanswered.some(hasLeft) && !isTakenWhole) return toSent(batch, unanswered, plan, false)
    // Nothing has watched for newer records of its keys since the reply was kept, so a read could not tell which mark is to stay.
    if (reply === undefined) throw forgotten()
    const asParts = { ...stored, records: toParts(states, plan) }
    await checkToken(context, authorisation, asParts, plan)
    return toAnswered(batch, asParts, reply)
  }
  return toSent(batch, unanswered, plan, isCut)
}

/** A batch that comes again while V2 serves. */
interface ResentBatch {
  readonly client: Client
  readonly plan: Plan
  /** The numbers under which V2 was sent it before, the newest first. */
  readonly batches: readonly number[]
  /** Reads a mark of V2 with the client's credentials. */
  readonly readMark: ReadMarkOfV2
  readonly reading: ReplyReading
}

/** V2 is asked for a mark for no longer than this, ms: then it is sent the batch, and judges it itself. */
const SHOWN_WITHIN_MS = 5_000

/**
 * Answers a batch that comes again while V2 serves with V2's own reply, where that is final, and this client may have it. Waits for
 * requests with it that are under way, on whichever instance. Undefined: V2 is to be sent it again, also where the journal cannot be read.
 * Error: `ADP_V2_OUTCOME_UNKNOWN` where such a request takes longer than the budget.
 */
export async function replayOnV2(context: WriteContext, resent: ResentBatch): Promise<Answered | undefined> {
  const { client, plan, batches, reading } = resent
  const deadlineMs = context.clock.nowMs() + client.partner.budgetMs
  try {
    for (const batch of batches) {
      const stored = await loadEnded(context, batch, deadlineMs, 'ADP_V2_OUTCOME_UNKNOWN')
      const reply = decodeKeptReply(stored?.records[0]?.answer)
      if (stored === undefined || reply === undefined) continue
      if (!(await isFinalReply(reply, plan.records.length, reading))) continue
      const asParts = { ...stored, records: toParts(await statesOfParts(reply, reading), plan) }
      return (await mayHave(context, resent, asParts)) ? toAnswered(batch, asParts, reply) : undefined
    }
  } catch (cause) {
    if (!(cause instanceof AdapterError) || errorRules[cause.code].class !== 'internal') throw cause
  }
  return undefined
}

/** True for credentials that V2 accepted for the batch, or that it shows one of its marks now. */
async function mayHave(
  { verdicts }: WriteContext,
  { client, plan, readMark }: ResentBatch,
  { batch, records }: StoredBatch,
): Promise<boolean> {
  if (verdicts.isAccepted(batch, client.identity)) return true
  const accepted = records.find(
    ({ state, position }) => state === 'confirmed' && plan.records[position]?.record !== undefined,
  )
  const record = accepted && plan.records[accepted.position]?.record
  if (record === undefined) return false
  const seen = await readMark(record, SHOWN_WITHIN_MS)
  const isShown = seen.kind === 'read' && hasRow(seen.json, record)
  if (isShown) verdicts.accept(batch, client.identity)
  return isShown
}

const toAnswered = (batch: number, stored: StoredBatch, kept: KeptReply): Answered => ({
  tally: tallyOf(stored),
  queuedMs: 0,
  replayed: true,
  askedV3: false,
  batch,
  kept,
})

/** True for a request of which V2 may have applied something. */
const hasLeft = (stored: StoredBatch | undefined): boolean =>
  stored?.records.some(({ state }) => state !== 'refused') !== false

/** What requests without a reply leave open, the newest first; `isCut`: there were older ones, of which nothing is known. */
function toSent(
  batch: number,
  requests: readonly (StoredBatch | undefined)[],
  { records: planned }: Plan,
  isCut: boolean,
): SentToV2 {
  const left = requests.filter(hasLeft)
  const times = (isCut ? requests : left.length > 0 ? left : requests.slice(0, 1)).flatMap(
    (stored) => stored?.receivedMs ?? [],
  )
  const lastOf = new Map(
    planned.flatMap(({ key, faults }, position) => (faults === undefined ? [[key, position]] : [])),
  )
  const records = planned.map(({ key }, position) => {
    const each = requests.map((stored) => recordIn(stored, position, planned.length))
    const sent = each.find(mayHaveLeft)
    // A request that was sent supersedes the ones before; one that was not supersedes nothing.
    const isSuperseded = (sent ?? each[0])?.superseded === true
    const state = isCut || sent !== undefined ? 'unknown' : 'refused'
    // V2 was sent all records at once, so its mark of the last one of a key hides those of the others from every read.
    const isHidden = state === 'unknown' && lastOf.get(key) !== position
    return { state, superseded: isSuperseded || isHidden } as const
  })
  return { batch, receivedMs: times.length === 0 ? undefined : Math.min(...times), records }
}

/** A record of a request to V2; one may stand for all of them, and of a request that is not kept nothing is known. */
function recordIn(
  stored: StoredBatch | undefined,
  position: number,
  count: number,
): Pick<StoredRecord, 'state' | 'superseded'> {
  const isEach = stored?.records.length === count
  const record = stored?.records[isEach ? position : 0]
  return { state: record?.state ?? 'unknown', superseded: isEach && record?.superseded === true }
}

/** The error of a repeated batch whose answer is gone. */
export const forgotten = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_LOST',
    'This batch came before and may have been applied; its answer is not kept any longer. Nothing was sent again.',
  )

/** A batch that V2 was sent, once that has ended. Error, with this code: it takes longer than until then. */
async function loadEnded(
  { journal, predecessors, clock }: WriteContext,
  batch: number,
  deadlineMs: number,
  code: 'ADP_OUTCOME_UNKNOWN' | 'ADP_V2_OUTCOME_UNKNOWN',
): Promise<StoredBatch | undefined> {
  const stored = await journal.load(batch)
  const open = stored?.records.filter(({ state }) => state === 'open') ?? []
  if (open.length === 0) return stored
  const refs = open.map(({ position }) => ({ batch, position }))
  if (await predecessors.until(refs, deadlineMs - clock.nowMs())) return journal.load(batch)
  throw new AdapterError(
    code,
    'The same batch is still being sent to V2, and its records may be applied. Nothing was sent now; send it again later for its answer.',
  )
}

/** The records of the batch as the parts of V2's reply say; unread, all count as answered by the service. */
function toParts(
  states: readonly StoredRecord['state'][] | undefined,
  { records }: Plan,
): readonly StoredRecord[] {
  const isEach = states?.length === records.length
  return records.map((_, position) => ({
    position,
    state: (isEach ? states[position] : undefined) ?? 'confirmed',
    answer: undefined,
    reason: undefined,
    retry: undefined,
    superseded: false,
    attempts: 1,
  }))
}
