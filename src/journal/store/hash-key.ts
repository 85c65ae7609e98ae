import { hash } from 'node:crypto'

/** Hashes record keys with the salt of the journal: 16 bytes, which no table of known keys gives away. */
export function createKeyHash(salt: Uint8Array): (key: string) => Uint8Array {
  const prefix = Buffer.from(salt).toString('hex')
  return (key) => hash('sha256', prefix + key, 'buffer').subarray(0, 16)
}
