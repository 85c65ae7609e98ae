import { AdapterError } from '../../errors.ts'
import type { Slices } from '../../http/slices.ts'
import type { StoredBatch, StoredRecord } from '../../journal/index.ts'
import type { BatchTally } from '../../observability/events.ts'
import type { Authorisation } from '../../partners/partner.ts'
import { checkToken } from '../check-token.ts'
import type { WriteContext } from '../context.ts'
import type { Plan } from '../plan.ts'
import { tallyOf } from '../stored-parts.ts'
import { decodeKeptReply, type KeptReply } from './kept-reply.ts'
import { hadKeptReply, statesOfParts } from './relayed-outcomes.ts'

/** A batch that V2 served, when it comes again and V3 serves. */
export type ReplayedRelay =
  | { readonly kind: 'kept'; readonly reply: KeptReply; readonly tally: BatchTally }
  | {
      /** There is no reply to give: V3 serves the batch in its place. */
      readonly kind: 'lost'
      /** When the first of the requests came that V2 may have applied, or else the last of all; undefined: that is not kept any longer. */
      readonly receivedMs: number | undefined
      /** True for a record that V2 may have applied. */
      readonly mayHaveLeft: (position: number) => boolean
      /** True for a record of whose key a newer one was confirmed since. */
      readonly superseded: (position: number) => boolean
    }

/** The requests with one batch that were begun for V2. */
export interface RelayedBefore {
  /** Their numbers, the newest first. V2 may have applied the batch with any of them. */
  readonly batches: readonly number[]
  /** The oldest are not among them. */
  readonly isCut: boolean
}

/**
 * Waits for the requests to V2 with this batch that are under way, on whichever instance, and gives V2's reply: the last one, unless a later
 * request may have changed what it says. Errors: `ADP_OUTCOME_UNKNOWN` when they take longer than the budget; `ADP_JOURNAL_LOST` when the
 * reply was kept and is erased; those of `checkToken`; those of the journal.
 */
export async function replayRelayed(
  context: WriteContext,
  authorisation: Authorisation,
  plan: Plan,
  { batches, isCut }: RelayedBefore,
  slices: Slices,
): Promise<ReplayedRelay> {
  const deadlineMs = context.clock.nowMs() + authorisation.partner.budgetMs
  const count = plan.records.length
  const unanswered: (StoredBatch | undefined)[] = []
  // One after another: a reply may have megabytes.
  for (const batch of batches) {
    const stored = await loadEnded(context, batch, deadlineMs, 'ADP_OUTCOME_UNKNOWN')
    if (stored === undefined || !stored.records.some(hadKeptReply)) {
      unanswered.push(stored)
      continue
    }
    const mayHaveLeft = unanswered.some((later) => hasLeft(later))
    const reply = decodeKeptReply(stored.records[0]?.answer)
    // Where V2 did not take all of it, a later request may have been taken.
    const states = reply && (await statesOfParts(reply, { slices }))
    const isTakenWhole = states?.length === count && states.every((state) => state === 'confirmed')
    if (mayHaveLeft && !isTakenWhole) return toLost(unanswered, count, false)
    // Nothing has watched for newer records of its keys since the reply was kept, so a read could not tell which mark is to stay.
    if (reply === undefined) throw forgotten()
    const asParts = { ...stored, records: toParts(states, plan) }
    await checkToken(context, authorisation, asParts, plan)
    return { kind: 'kept', reply, tally: tallyOf(asParts) }
  }
  return toLost(unanswered, count, isCut)
}

/** True for a request of which V2 may have applied something. */
const hasLeft = (stored: StoredBatch | undefined): boolean =>
  stored?.records.some(({ state }) => state !== 'refused') !== false

/** What requests without a reply leave open, the newest first; `isCut`: there were older ones, of which nothing is known. */
function toLost(
  requests: readonly (StoredBatch | undefined)[],
  count: number,
  isCut: boolean,
): ReplayedRelay {
  const isEach = (stored: StoredBatch): boolean => stored.records.length === count
  const mayHaveLeft = (stored: StoredBatch | undefined, position: number): boolean =>
    stored?.records[isEach(stored) ? position : 0]?.state !== 'refused'
  const left = requests.filter(hasLeft)
  const times = (isCut ? requests : left.length > 0 ? left : requests.slice(0, 1)).flatMap(
    (stored) => stored?.receivedMs ?? [],
  )
  return {
    kind: 'lost',
    receivedMs: times.length === 0 ? undefined : Math.min(...times),
    // A request that was sent supersedes the ones before; one that was not supersedes nothing.
    superseded: (position) => {
      const last = left.find((stored) => mayHaveLeft(stored, position)) ?? requests[0]
      return last !== undefined && isEach(last) && last.records[position]?.superseded === true
    },
    mayHaveLeft: (position) => isCut || requests.some((stored) => mayHaveLeft(stored, position)),
  }
}

/** The error of a repeated batch whose answer is gone. */
export const forgotten = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_LOST',
    'This batch came before and may have been applied; its answer is not kept any longer. Nothing was sent again.',
  )

/** A batch that V2 was sent, once that has ended. Error, with this code: it takes longer than until then. */
export async function loadEnded(
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
export function toParts(
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
