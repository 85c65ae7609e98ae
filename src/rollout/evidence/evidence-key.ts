import { createCipheriv, createDecipheriv, createHmac, hash, randomBytes } from 'node:crypto'

import { AdapterError } from '../../errors.ts'
import type { JournalDatabase } from '../../journal/index.ts'
import type { EvidenceKey, PeriodKey } from './evidence-store.ts'

const [KEY, NONCE, TAG] = [32, 12, 16]
/** Bytes of a hash that are kept. */
const HASH_BYTES = 16

type MacKey = JournalDatabase['macKey']

/** The key of a period as its row has it. */
export interface KeptKey {
  readonly hash_key: Uint8Array
  readonly sealed: number
}

/** Makes a key, sealed where the journal has keys. `place` names the row, so that none can be moved to another. */
export function createKey(macKey: MacKey, place: string): KeptKey {
  const key = randomBytes(KEY)
  if (!macKey.keyed) return { hash_key: key, sealed: 0 }
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', sealingKey(macKey), nonce).setAAD(Buffer.from(place))
  const text = Buffer.concat([cipher.update(key), cipher.final()])
  return { hash_key: Buffer.concat([nonce, cipher.getAuthTag(), text]), sealed: 1 }
}

/** Opens a key. Errors: `ADP_JOURNAL_DAMAGED`; `ADP_CONFIGURATION` for a sealed one without the journal's keys. */
export function openKey(macKey: MacKey, place: string, { hash_key: kept, sealed }: KeptKey): Uint8Array {
  if (sealed === 0) {
    if (kept.length !== KEY) throw damaged(place)
    return kept
  }
  if (!macKey.keyed)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      'The evidence of comparison is sealed, and the configuration has no journal.keys.',
    )
  try {
    const cipher = createDecipheriv('aes-256-gcm', sealingKey(macKey), kept.subarray(0, NONCE))
    cipher.setAAD(Buffer.from(place)).setAuthTag(kept.subarray(NONCE, NONCE + TAG))
    return Buffer.concat([cipher.update(kept.subarray(NONCE + TAG)), cipher.final()])
  } catch (cause) {
    throw damaged(place, cause)
  }
}

/** The hashes and days of a period. */
export function toEvidenceKey(key: PeriodKey): EvidenceKey {
  const [from, until] = key.days
  return { ...key, hash: createHash(key.secret), covers: (day) => day >= from && day < until }
}

/** The keyed hash of a text (HMAC-SHA-256, cut to 16 bytes). */
function createHash(key: Uint8Array): (kind: string, text: string) => Uint8Array {
  // Inner and outer keys are made once: createHmac for each text takes three times as long.
  const [inner, outer] = [padded(key, 0x36), padded(key, 0x5c)]
  return (kind, text) => {
    const first = hash('sha256', Buffer.concat([inner, Buffer.from(`${kind}\0${text}`)]), 'buffer')
    return hash('sha256', Buffer.concat([outer, first]), 'buffer').subarray(0, HASH_BYTES)
  }
}

/** RFC 2104: the key, filled up to a block of the hash. */
function padded(key: Uint8Array, by: number): Buffer {
  return Buffer.alloc(64, by).map((byte, at) => byte ^ (key[at] ?? 0)) as Buffer
}

/** The key of the stages' MACs is sealed with a key of the journal and outlives it; one derived from it seals the keys of evidence. */
const sealingKey = ({ key }: MacKey): Uint8Array =>
  createHmac('sha256', key).update('markbridge evidence').digest()

function damaged(place: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged: the key of the evidence of ${place} was changed.`,
    { cause },
  )
}
