import { createHmac } from 'node:crypto'

/** The key of a period as plain values, for as long as it is kept. */
export interface PeriodKey {
  readonly period: number
  /** Today by the clock of the database, `YYYY-MM-DD`. */
  readonly today: string
  /** The hour by the same clock (UTC), `00` to `23`. */
  readonly hour: string
  /** The days that the period counts records of, `YYYY-MM-DD`: from the first on, up to but not including the second. */
  readonly days: readonly [from: string, until: string]
  readonly secret: Uint8Array
}

/** The key of a period, and what it is used for. */
export interface EvidenceKey extends PeriodKey {
  /** 16 bytes that say nothing about the text without the key. Texts of different kinds never have the same hash. */
  hash(kind: 'pair' | 'request' | 'school' | 'record', text: string): Uint8Array
  /** Whether this period counts records of a day, `YYYY-MM-DD`; each day is of one period. */
  covers(day: string): boolean
}

/** Bits of what a hash went through: the checks of a learner and day, the sides that a record was written on. */
export const checkBits = { reply: 0, visible: 1, readBack: 2, answers: 3, v2: 4, v3: 5 } as const

/** Bytes of a hash that are kept. */
const HASH_BYTES = 16

/** The hashes and days of a period. */
export function toEvidenceKey(key: PeriodKey): EvidenceKey {
  const [from, until] = key.days
  return {
    ...key,
    hash: (kind, text) =>
      createHmac('sha256', key.secret).update(`${kind}\0${text}`).digest().subarray(0, HASH_BYTES),
    covers: (day) => day >= from && day < until,
  }
}
