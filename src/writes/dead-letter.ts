import { errorRules } from '../errors.ts'
import type { ReopenResult, Settled, StoredBatch } from '../journal/index.ts'
import { defaultErrorMapping, type FailedOutcome, toV2Failure } from '../translate/index.ts'
import { encodeErrorArray } from '../v2/index.ts'
import type { WriteContext } from './context.ts'
import { encodeAnswer } from './stored-answer.ts'
import { mayHaveLeft } from './stored-parts.ts'

/**
 * Why a record is not retried: this version cannot read its request, or until the deadline of retries there were no credentials
 * of its partner, no such partner in the configuration, or no token for it.
 */
export type DeadLetterReason = 'unreadable' | 'noCredentials' | 'noPartner' | 'noToken'

/**
 * Ends open records that cannot be sent: they are dead letters, whose remedies `markbridge journal` shows. One that may have
 * left stays unknown; one that certainly was not applied is refused. `stored` is the batch as it was before they were opened.
 * Errors: those of `Journal.settle`.
 */
export async function deadLetter(
  context: Pick<WriteContext, 'journal' | 'predecessors' | 'events' | 'newId'>,
  stored: StoredBatch,
  positions: readonly number[],
  reason: DeadLetterReason,
  lease: number,
): Promise<void> {
  const { batch, partner, records } = stored
  const outcomes = positions.map((position): Settled => {
    const unknown = mayHaveLeft(records[position])
    const answer = answerOf(unknown ? mayStand : neverSent, context.newId())
    return { position, state: unknown ? 'unknown' : 'refused', answer, reason, deadLetter: true }
  })
  await context.journal.settle(batch, outcomes, lease)
  context.predecessors.settled(batch, positions)
  const unknown = outcomes.filter(({ state }) => state === 'unknown').length
  const notApplied = outcomes.length - unknown
  context.events.recovered({
    partner,
    records: outcomes.length,
    accepted: 0,
    refused: 0,
    notApplied,
    unknown,
  })
}

/**
 * Ends open records of a batch whose rows are damaged, so that nothing of it can be read: dead letters of unknown outcome. A client
 * that sends the batch again is answered `ADP_OUTCOME_UNKNOWN`. Errors: those of `Journal.settle`.
 */
export async function deadLetterDamaged(
  { journal, predecessors }: Pick<WriteContext, 'journal' | 'predecessors'>,
  batch: number,
  { after, lease }: ReopenResult,
): Promise<void> {
  const positions = [...after.keys()]
  if (positions.length === 0) return
  const end = { state: 'unknown', answer: undefined, reason: 'damaged', deadLetter: true } as const
  await journal.settle(
    batch,
    positions.map((position) => ({ position, ...end })),
    lease,
  )
  predecessors.settled(batch, positions)
}

/**
 * Ends open records that cannot be finished and that newer records of their keys wait for: they stay unknown and are never
 * posted again. Errors: those of `Journal.settle`.
 */
export async function deadLetterSuperseded(
  context: Pick<WriteContext, 'journal' | 'predecessors' | 'events' | 'newId'>,
  { batch, partner, lease }: { readonly batch: number; readonly partner: string; readonly lease: number },
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
  await context.journal.settle(batch, outcomes, lease)
  context.predecessors.settled(batch, positions)
  const unknown = positions.length
  context.events.recovered({ partner, records: unknown, accepted: 0, refused: 0, notApplied: 0, unknown })
}

const mayStand = { kind: 'unknown', reason: 'connectionLost' } as const
const neverSent = { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined } as const

/** As for a part of a reply, which takes its ids from the request: that may not be there to be read. */
function answerOf(outcome: FailedOutcome, sequenceId: string): string {
  const { status, errors } = toV2Failure(outcome, defaultErrorMapping)
  return encodeAnswer({ status, json: encodeErrorArray(errors, sequenceId) })
}
