import { createHmac } from 'node:crypto'

/** The secret of a period with its days, for as long as the secret exists. */
export interface PeriodKey {
  readonly period: number
  /** Today as `YYYY-MM-DD`, by the clock of the database. */
  readonly today: string
  /** The hour (UTC) by the same clock, `00` to `23`. */
  readonly hour: string
  /** The days of the records that the period counts, `YYYY-MM-DD`: from the first up to but not including the second. */
  readonly days: readonly [from: string, until: string]
  readonly secret: Uint8Array
}

export interface EvidenceKey extends PeriodKey {
  /** Returns a hash of 16 bytes that reveals nothing about the text without the key. Different kinds never share a hash. */
  hash(kind: 'pair' | 'request' | 'school' | 'record', text: string): Uint8Array
  /** Returns true if this period counts records of a day, `YYYY-MM-DD`. Each day belongs to one period. */
  covers(day: string): boolean
}

/** The bits of a hash: the checks of a learner and day, and the sides on which a record was written. */
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
