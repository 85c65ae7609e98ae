import { isDamagedBatch, type Settled, type StoredBatch } from '../../journal/index.ts'
import type { Partner } from '../../partners/partner.ts'
import type { PostOutcome, ReadOutcome, V3Record } from '../../v3/index.ts'
import type { WriteContext } from '../context.ts'
import { markOrphaned } from '../orphans.ts'
import { type Plan, planStored } from '../plan.ts'
import { createReadBack, type ReadBackParts } from '../read-back.ts'
import { replyContextOf, toReplyPart } from '../reply-part.ts'
import { settlementOf } from '../settlement-policy.ts'
import { knownMarksOf } from '../write-session.ts'
import { decodeStoredRequest, type StoredRequest, wasOnV2 } from '../stored-request.ts'

/** Reads the mark of a learner and event; both in the form of V3. */
export interface MarkReaders {
  readonly v3: (query: string, timeoutMs: number) => Promise<ReadOutcome>
  readonly v2: (record: V3Record, timeoutMs: number) => Promise<ReadOutcome>
}

/** What reads older records back. */
export interface OlderReading {
  readonly partner: Partner
  readonly readers: MarkReaders
  /** By the clock, ms. */
  readonly deadlineMs: number
}

/** V2 is read where V3 has not answered within this time, or this share of what is left. */
const V3_WITHIN_MS = 2_000
const V3_SHARE = 1 / 3
/** Where a partner's lost writes are not read back otherwise. */
const UNSCHEDULED_MS = [0, 1_000]

/**
 * Finds out what became of records of one batch whose outcome is unknown, before V2 is sent a newer one of their keys. They are read and
 * never posted: V2 serves now. False: nothing was found out, here or because another run has them.
 */
export async function readOlder(
  context: WriteContext,
  batch: number,
  positions: readonly number[],
  reading: OlderReading,
): Promise<boolean> {
  const { journal, active, orphans, clock, predecessors } = context
  const before = await loadReadable(context, batch, reading.partner)
  if (before === undefined || active.has(batch)) return false
  const opened = await journal.reopen(batch, positions, undefined, 'beforeRelay')
  const own = [...opened.after.keys()]
  if (own.length === 0) return false
  const claim = active.claim(batch, own, before.stored.records.length, opened.lease)
  try {
    const outcomes = await Promise.all(own.map((position) => readOne(context, before, position, reading)))
    await journal.settle(batch, outcomes, opened.lease)
    predecessors.settled(batch, own)
    return outcomes.some(({ state, retry }) => state !== 'unknown' || retry === undefined)
  } catch (cause) {
    markOrphaned(orphans, batch, opened.after, opened.lease, clock.nowMs())
    throw cause
  } finally {
    claim.end()
  }
}

interface Readable {
  readonly stored: StoredBatch
  readonly request: StoredRequest
  readonly plan: Plan
}

async function loadReadable(
  { journal, slicing }: WriteContext,
  batch: number,
  partner: Partner,
): Promise<Readable | undefined> {
  try {
    const stored = await journal.load(batch)
    // The rules of another partner are not known here.
    if (stored?.payload === undefined || stored.partner !== partner.id) return undefined
    const request = decodeStoredRequest(stored.payload)
    return { stored, request, plan: await planStored(request, partner, stored.receivedMs, slicing.open()) }
  } catch (cause) {
    if (isDamagedBatch(cause)) return undefined
    throw cause
  }
}

async function readOne(
  context: WriteContext,
  { stored, request, plan }: Readable,
  position: number,
  reading: OlderReading,
): Promise<Settled> {
  const planned = plan.records[position]
  const kept = stored.records[position]
  if (planned?.record === undefined || kept === undefined)
    return { position, state: 'unknown', answer: kept?.answer, reason: 'unreadable', deadLetter: true }
  const { record } = planned
  const outcome = await createReadBack(toParts(context, stored.batch, record, reading, wasOnV2(request)))(
    { record, position },
    (resolve) => resolve({ kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined }),
    'connectionLost',
    { how: 'before', toMs: context.clock.nowMs() },
  )
  const { outcomesShown } = plan
  const part = toReplyPart(planned, outcome, replyContextOf(request.request, context.newId))
  return settlementOf(position, outcome satisfies PostOutcome, part, {
    outcomesShown,
    // What was not applied waits for its client, not for recovery.
    clientWaits: outcomesShown,
    receivedMs: stored.receivedMs,
    nowMs: context.nowMs(),
  })
}

function toParts(
  context: WriteContext,
  batch: number,
  record: V3Record,
  { partner, readers, deadlineMs }: OlderReading,
  isOnV2: boolean,
): ReadBackParts {
  const { clock, echoes, nowMs } = context
  const leftMs = (): number => deadlineMs - clock.nowMs()
  let isV3Silent = false
  return {
    read: async (query) => {
      if (!isV3Silent) {
        const seen = await readers.v3(query, Math.min(V3_WITHIN_MS, leftMs() * V3_SHARE))
        if (seen.kind === 'read') return seen
        isV3Silent = true
      }
      return readers.v2(record, leftMs())
    },
    wait: (ms) => new Promise((resolve) => void clock.after(ms, resolve)),
    nowMs: () => clock.nowMs(),
    leftMs,
    spacingMs: partner.readBackAfterMs.length === 0 ? UNSCHEDULED_MS : partner.readBackAfterMs,
    profile: () => echoes.profile(),
    known: knownMarksOf(context, batch, isOnV2),
    wallMs: nowMs,
    byV2: isOnV2,
  }
}
