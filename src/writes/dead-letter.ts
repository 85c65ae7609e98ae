import { errorRules } from '../errors.ts'
import type { ReopenResult, Settled, StoredBatch } from '../journal/index.ts'
import { defaultErrorMapping, toV2Failure } from '../translate/index.ts'
import { encodeErrorArray } from '../v2/index.ts'
import type { WriteContext } from './context.ts'
import { encodeAnswer, mayHaveLeft } from './reply.ts'

/**
 * Why a record is not retried: this version cannot read its request, or until the deadline of retries there were no credentials
 * of its partner, no such partner in the configuration, or no token for it.
 */
export type DeadLetterReason = 'unreadable' | 'noCredentials' | 'noPartner' | 'noToken'

const mayStand = { kind: 'unknown', reason: 'connectionLost' } as const
const neverSent = { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined } as const

/**
 * Ends open records that cannot be sent: they are dead letters, whose remedies `markbridge journal` shows. One that may have
 * left stays unknown; one that certainly was not applied is refused. `stored` is the batch as it was before they were opened.
 * Errors: those of `Journal.settle`.
 */
export async function deadLetter(
  context: WriteContext,
  { batch, partner, records }: StoredBatch,
  positions: readonly number[],
  reason: DeadLetterReason,
  lease: number,
): Promise<void> {
  const outcomes = positions.map((position): Settled => {
    const isUnknown = mayHaveLeft(records[position])
    // As for a part of a reply, which takes its ids from the request: that may not be there to be read.
    const { status, errors } = toV2Failure(isUnknown ? mayStand : neverSent, defaultErrorMapping)
    const answer = encodeAnswer({ status, json: encodeErrorArray(errors, context.newId()) })
    return { position, state: isUnknown ? 'unknown' : 'refused', answer, reason, deadLetter: true }
  })
  await settle(context, { batch, partner, lease }, outcomes)
}

/**
 * Ends open records of a batch whose rows are damaged, so that nothing of it can be read: dead letters of unknown outcome. A client
 * that sends the batch again is answered `ADP_OUTCOME_UNKNOWN`. Errors: those of `Journal.settle`.
 */
export async function deadLetterDamaged(
  context: WriteContext,
  batch: number,
  { after, lease }: ReopenResult,
): Promise<void> {
  const end = { state: 'unknown', answer: undefined, reason: 'damaged', deadLetter: true } as const
  const outcomes = [...after.keys()].map((position) => ({ position, ...end }))
  if (outcomes.length > 0) await settle(context, { batch, partner: undefined, lease }, outcomes)
}

/**
 * Ends open records that cannot be finished and that newer records of their keys wait for: they stay unknown and are never
 * posted again. Errors: those of `Journal.settle`.
 */
export async function deadLetterSuperseded(
  context: WriteContext,
  batch: Batch,
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
  await settle(context, batch, outcomes)
}

interface Batch {
  readonly batch: number
  /** Undefined: not known, so it is not counted for one. */
  readonly partner: string | undefined
  readonly lease: number
}

async function settle(
  { journal, predecessors, events }: WriteContext,
  { batch, partner, lease }: Batch,
  outcomes: readonly Settled[],
): Promise<void> {
  await journal.settle(batch, outcomes, lease)
  predecessors.settled(
    batch,
    outcomes.map(({ position }) => position),
  )
  if (partner === undefined) return
  const records = outcomes.length
  const unknown = outcomes.filter(({ state }) => state === 'unknown').length
  events.recovered({ partner, records, accepted: 0, refused: 0, notApplied: records - unknown, unknown })
}
