import { AdapterError, errorRules } from '../../errors.ts'
import type { StoredBatch } from '../../journal/index.ts'
import type { Client } from '../../partners/partner.ts'
import { hasRow } from '../check-token.ts'
import type { WriteContext } from '../context.ts'
import type { Plan } from '../plan.ts'
import type { Answered } from '../reply.ts'
import { tallyOf } from '../stored-parts.ts'
import { decodeKeptReply } from './kept-reply.ts'
import type { MarkReaders } from './read-older.ts'
import { isFinalReply, type ReplyReading, statesOfParts } from './relayed-outcomes.ts'
import { loadEnded, toParts } from './replay-relayed.ts'

/** A batch that comes again while V2 serves. */
export interface ResentBatch {
  readonly client: Client
  readonly plan: Plan
  /** The numbers under which V2 was sent it before, the newest first. */
  readonly batches: readonly number[]
  /** Reads a mark of V2 with the client's credentials. */
  readonly readMark: MarkReaders['v2']
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
    // One after another: a reply may have megabytes.
    for (const batch of batches) {
      const stored = await loadEnded(context, batch, deadlineMs, 'ADP_V2_OUTCOME_UNKNOWN')
      const reply = decodeKeptReply(stored?.records[0]?.answer)
      if (stored === undefined || reply === undefined) continue
      if (!(await isFinalReply(reply, plan.records.length, reading))) continue
      const asParts = { ...stored, records: toParts(await statesOfParts(reply, reading), plan) }
      if (!(await mayHave(context, resent, asParts))) return undefined
      return { tally: tallyOf(asParts), queuedMs: 0, replayed: true, askedV3: false, batch, kept: reply }
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
  const accepted = records.flatMap(({ state, position }) =>
    state === 'confirmed' ? (plan.records[position]?.record ?? []) : [],
  )
  const [record] = accepted
  if (record === undefined) return false
  const seen = await readMark(record, SHOWN_WITHIN_MS)
  const isShown = seen.kind === 'read' && hasRow(seen.json, record)
  if (isShown) verdicts.accept(batch, client.identity)
  return isShown
}
