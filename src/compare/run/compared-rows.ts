import { isGuid } from '../../odata/index.ts'
import { type RecordDiff, withoutNoise } from '../diff/index.ts'
import { isMembers } from '../diff/values.ts'
import type { Comparison } from '../verdict.ts'
import type { MarkKey } from './queries.ts'

/** Learner and session of a mark, as V2 has them, else V3; undefined where they cannot be asked for. */
export const keyOf = ({ v2, v3 }: Pick<RecordDiff, 'v2' | 'v3'>): MarkKey | undefined =>
  keyOfRow(v2) ?? keyOfRow(v3)

/** Learner and session of the row of one side. */
export function keyOfRow(row: unknown): MarkKey | undefined {
  if (!isMembers(row)) return undefined
  const { Learner: learner, AttendableEvent: event } = row
  if (typeof learner !== 'string' || typeof event !== 'string' || !isGuid(learner) || !isGuid(event))
    return undefined
  return { learner, event }
}

/** The key as a text that is equal for equal keys; empty for none. */
export function nameOf(key: MarkKey | undefined): string {
  return key === undefined ? '' : `${key.learner} ${key.event}`.toLowerCase()
}

/** True where both sides show the same. */
export const isEqual = ({ verdict }: Comparison): boolean => verdict === 'same' || verdict === 'equivalent'

/** What V2 contradicts itself in, by record: the comparison of one read of V2 with another. */
export type Noise = ReadonlyMap<string, Comparison>

/** Takes the noise from two reads of V2 that were set against each other. */
export function noiseOf(rows: readonly RecordDiff[]): Noise {
  const noise = new Map<string, Comparison>()
  for (const row of rows) {
    const name = nameOf(keyOf(row))
    if (name !== '' && !isEqual(row.comparison) && row.comparison.verdict !== 'unknown')
      noise.set(name, row.comparison)
  }
  return noise
}

/**
 * The record without the differences that are noise: its other fields decide. A record that V2 has in one of its reads only, and
 * that one side lacks, is `unknown`: V2 gives no answer that V3 could be measured by.
 */
export function leaveOutNoise(row: RecordDiff, noise: Noise): RecordDiff {
  const { comparison } = row
  const own = isEqual(comparison) ? undefined : noise.get(nameOf(keyOf(row)))
  if (own === undefined) return row
  if (comparison.verdict === 'differs') return { ...row, comparison: withoutNoise(comparison, own) }
  return own.verdict === 'differs' ? row : { ...row, comparison: { ...comparison, verdict: 'unknown' } }
}
