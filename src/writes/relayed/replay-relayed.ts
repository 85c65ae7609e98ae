import { AdapterError } from '../../errors.ts'
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
      /** When V2 was first sent what it may have applied; undefined: that is not kept any longer. */
      readonly receivedMs: number | undefined
      /** True for a record that V2 may have applied. */
      readonly mayHaveLeft: (position: number) => boolean
      /** True for a record of whose key a newer one was confirmed since. */
      readonly superseded: (position: number) => boolean
    }

/**
 * Waits for the requests to V2 with this batch that are under way, on whichever instance, and gives the reply to the last one that was
 * kept. `batches`: their numbers, the newest first; V2 may have applied the batch with any of them. Errors: `ADP_OUTCOME_UNKNOWN` when one
 * takes longer than the budget; `ADP_JOURNAL_LOST` when a reply was kept and is erased; those of `checkToken`; those of the journal.
 */
export async function replayRelayed(
  context: WriteContext,
  authorisation: Authorisation,
  plan: Plan,
  batches: readonly number[],
): Promise<ReplayedRelay> {
  const { budgetMs } = authorisation.partner
  const sent = await Promise.all(batches.map((batch) => loadEnded(context, batch, budgetMs)))
  for (const stored of sent) {
    const reply = decodeKeptReply(stored?.records[0]?.answer)
    if (stored === undefined || reply === undefined) continue
    const asParts = { ...stored, records: toParts(reply, plan) }
    await checkToken(context, authorisation, asParts, plan)
    return { kind: 'kept', reply, tally: tallyOf(asParts) }
  }
  // Nothing has watched for newer records of its keys since the reply was kept, so a read could not tell which mark is to stay.
  if (sent.some((stored) => stored?.records.some(hadKeptReply))) throw forgotten()
  return toLost(sent, plan.records.length)
}

/** What the requests without a reply leave open. Each supersedes the one before, so the newest shows what was newer than all. */
function toLost(sent: readonly (StoredBatch | undefined)[], count: number): ReplayedRelay {
  const [newest] = sent
  const isEach = (stored: StoredBatch): boolean => stored.records.length === count
  const mayHaveLeft = (stored: StoredBatch | undefined, position: number): boolean =>
    stored?.records[isEach(stored) ? position : 0]?.state !== 'refused'
  const left = sent.filter((stored) => stored?.records.some(({ state }) => state !== 'refused') !== false)
  const times = (left.length > 0 ? left : [newest]).flatMap((stored) => stored?.receivedMs ?? [])
  return {
    kind: 'lost',
    receivedMs: times.length === 0 ? undefined : Math.min(...times),
    superseded: (position) =>
      newest !== undefined && isEach(newest) && newest.records[position]?.superseded === true,
    mayHaveLeft: (position) => sent.some((stored) => mayHaveLeft(stored, position)),
  }
}

/** The error of a repeated batch whose answer is gone. */
export const forgotten = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_LOST',
    'This batch came before and may have been applied; its answer is not kept any longer. Nothing was sent again.',
  )

async function loadEnded(
  { journal, predecessors }: WriteContext,
  batch: number,
  budgetMs: number,
): Promise<StoredBatch | undefined> {
  const stored = await journal.load(batch)
  const open = stored?.records.filter(({ state }) => state === 'open') ?? []
  if (open.length === 0) return stored
  const refs = open.map(({ position }) => ({ batch, position }))
  if (await predecessors.until(refs, budgetMs)) return journal.load(batch)
  throw new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    'The same batch is still being sent to V2, and its records may be applied. Send it again later for its answer.',
  )
}

/** The records of the batch as the parts of V2's reply say; unread, all count as answered by the service. */
function toParts(reply: KeptReply, { records }: Plan): readonly StoredRecord[] {
  const states = statesOfParts(reply)
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
