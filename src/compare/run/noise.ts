import { type RecordDiff, withoutNoise } from '../diff/index.ts'
import type { Comparison } from '../verdict.ts'
import { keyOf, nameOf } from './compared-row.ts'

/** In what V2 contradicts itself, by record: the comparison of one read of V2 with another. */
export type Noise = ReadonlyMap<string, Comparison>

/** Takes the noise from two reads of V2 that were set against each other. */
export function noiseOf(rows: readonly RecordDiff[]): Noise {
  const noise = new Map<string, Comparison>()
  for (const row of rows) {
    const { verdict } = row.comparison
    if (verdict === 'same' || verdict === 'equivalent' || verdict === 'unknown') continue
    const key = keyOf(row)
    if (key !== undefined) noise.set(nameOf(key), row.comparison)
  }
  return noise
}

/**
 * The record without the differences that are noise: its other fields decide. A record that V2 has in one of its reads only, and
 * that one side lacks, is `unknown`: V2 gives no answer that V3 could be measured by.
 */
export function leaveOutNoise(row: RecordDiff, noise: Noise): RecordDiff {
  const { comparison } = row
  if (comparison.verdict === 'same' || comparison.verdict === 'equivalent') return row
  const key = keyOf(row)
  const own = key === undefined ? undefined : noise.get(nameOf(key))
  if (own === undefined) return row
  if (comparison.verdict === 'differs') return { ...row, comparison: withoutNoise(comparison, own) }
  return own.verdict === 'differs' ? row : { ...row, comparison: { ...comparison, verdict: 'unknown' } }
}
