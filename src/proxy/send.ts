import { isReplyTo } from '../translate/index.ts'
import {
  type BodyProfile,
  encodeRecord,
  type PostOutcome,
  runOrdered,
  type UpstreamError,
  type V3Record,
  type V3Writes,
} from '../v3/index.ts'
import type { Partner } from './partner.ts'
import type { PlannedRecord } from './plan.ts'

/** Receives the outcome of the record at `index`, once for each record that is posted. */
export type OnOutcome = (index: number, outcome: PostOutcome) => void

/**
 * Posts the records of a plan and reports each outcome. Returns the upstream's error when it denied the credentials before
 * anything else was answered: then no outcome was reported, nothing was applied, and the request as a whole gets that status
 * (product contract 1). Once an outcome was reported, a denial is told per part.
 */
export async function sendPlan(
  records: readonly PlannedRecord[],
  writes: V3Writes,
  { concurrency, bodyProfile }: Pick<Partner, 'concurrency' | 'bodyProfile'>,
  onOutcome: OnOutcome,
): Promise<UpstreamError | undefined> {
  const indexes = records.flatMap((planned, index) => (planned.record === undefined ? [] : [index]))
  const denied = new Map<number, Extract<PostOutcome, { kind: 'refused' }>>()
  const sent = new Set<number>()
  let released = false
  const report = (index: number, outcome: PostOutcome): void => {
    if (!released && outcome.kind === 'refused' && isDenial(outcome.error)) {
      denied.set(index, outcome)
      return
    }
    released = true
    for (const [earlier, held] of denied) onOutcome(earlier, held)
    denied.clear()
    onOutcome(index, outcome)
  }
  const run = (list: readonly number[], stopped: () => boolean): Promise<void> =>
    runOrdered(
      list.length,
      (position) => records[list[position] ?? -1]?.key ?? '',
      writes.atATime ?? concurrency,
      async (position) => {
        const index = list[position] ?? -1
        sent.add(index)
        const record = records[index]?.record
        if (record !== undefined) report(index, await postRecord(record, writes, bodyProfile))
      },
      stopped,
    )
  // While nothing but denials has come, no further record is sent.
  await run(indexes, () => denied.size > 0)
  const [first] = denied.values()
  if (first !== undefined) return first.error
  // A denial among the first answers was an exception: the rest goes out after all.
  const rest = indexes.filter((index) => !sent.has(index))
  if (rest.length > 0) await run(rest, () => false)
  return undefined
}

/**
 * Posts one record, and again where it was not applied and that may help. An answer that speaks of another record tells
 * nothing of this one.
 */
export async function postRecord(
  record: V3Record,
  writes: V3Writes,
  bodyProfile: BodyProfile,
): Promise<PostOutcome> {
  const body = encodeRecord(record, bodyProfile)
  let outcome = await writes.post(body)
  if (outcome.kind === 'notApplied') outcome = await writes.repost(body, outcome)
  if (outcome.kind !== 'accepted' || isReplyTo(record, outcome.reply)) return outcome
  return { kind: 'unknown', reason: 'otherRecord' }
}

/** True for 401 and 403: the credentials, not the record, are the cause. */
export function isDenial(error: UpstreamError): boolean {
  return error.status === 401 || error.status === 403
}
