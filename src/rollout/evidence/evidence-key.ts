import { createHmac } from 'node:crypto'

/** The secret and the days of a period of evidence (90 days). The secret exists only until the period is destroyed. */
export interface PeriodKey {
  readonly period: number
  /** The current day as `YYYY-MM-DD`, by the clock of the database. */
  readonly today: string
  /** The current hour (UTC) by the clock of the database, `00` to `23`. */
  readonly hour: string
  /** The days (`YYYY-MM-DD`) whose records the period counts: from `from` up to but not including `until`. */
  readonly days: readonly [from: string, until: string]
  readonly secret: Uint8Array
}

export interface EvidenceKey extends PeriodKey {
  /** Returns a hash of 16 bytes that reveals nothing about the text without the key. Texts of different kinds never share a hash. */
  hash(kind: 'pair' | 'request' | 'school' | 'record', text: string): Uint8Array
  /** Returns true if this period counts the records of a day (`YYYY-MM-DD`). Each day belongs to one period. */
  covers(day: string): boolean
}

/** The bits of a hash, by number: in which checks a learner-day was compared, and on which sides a record was written. */
export const checkBits = { reply: 0, readBack: 1, answers: 2, v2: 3, v3: 4 } as const

const HASH_BYTES = 16

export function toEvidenceKey(key: PeriodKey): EvidenceKey {
  const [from, until] = key.days
  return {
    ...key,
    hash: (kind, text) =>
      createHmac('sha256', key.secret).update(`${kind}\0${text}`).digest().subarray(0, HASH_BYTES),
    covers: (day) => day >= from && day < until,
  }
}
