import { createHmac } from 'node:crypto'

/** 48 bits fit a number exactly. */
const BYTES = 6

/**
 * The place of a unit among all units of its partner, 0 up to 1: it stays the same over restarts, instances and changes of the share, and
 * without the secret it cannot be chosen.
 */
export function positionOf(secret: Uint8Array, partner: string, unit: string): number {
  const digest = createHmac('sha256', secret)
    .update(JSON.stringify([partner, unit]))
    .digest()
  return digest.readUIntBE(0, BYTES) / 2 ** (8 * BYTES)
}
