import { createHash } from 'node:crypto'

import type { OfferedExchange } from './offered-exchange.ts'

/** Of a longer body only so much is hashed, with its length: a hash holds up what else the process does. */
const MAX_BYTES = 1_048_576

/** Equal for a write of one school that is sent again; undefined for reads, whose answers are new each time, and for bodies that were not kept. */
export function fingerprintOf(exchange: OfferedExchange): string | undefined {
  if (!('request' in exchange) && !('records' in exchange)) return undefined
  const hash = createHash('sha256').update(`${exchange.unit}\n`)
  if ('records' in exchange) {
    for (const { key, record } of exchange.records) {
      const { AttendanceCode, Qualifier, Present, Absent } = record
      hash.update(JSON.stringify([key, AttendanceCode.ExternalID, Qualifier, Present, Absent]))
    }
  } else {
    const { body } = exchange
    if (body === undefined) return undefined
    hash.update(`${body.length}\n`).update(body.subarray(0, MAX_BYTES))
  }
  return hash.digest('base64url')
}
