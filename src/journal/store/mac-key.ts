import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

import type { Exclusively } from '../schema/migrate.ts'
import { readMeta, writeMeta } from '../schema/migrate.ts'
import { damagedRow } from './damage.ts'
import { missingKey } from './seal.ts'
import type { JournalKey } from './store.ts'

/** What the MACs of stages and of their audit trail are made with. */
export interface MacKey {
  readonly key: Uint8Array
  /** The key without a key of the journal: that of rows from before it had one. */
  readonly unkeyed: Uint8Array
  /** False: the journal has no keys, so a user who may write the database can make a MAC. */
  readonly keyed: boolean
}

/** The name in `journal_meta`: the id of a key, and what it has sealed. */
const NAME = 'mac_key'
const [KEY, NONCE, TAG] = [32, 12, 16]

/**
 * Opens the MAC key: random bytes that are sealed with a key of the journal, so that they outlive it. Where an older key has sealed them
 * they are sealed anew with the first. Without any key, they are derived from the salt. Error: `ADP_CONFIGURATION` without the key that
 * has sealed them. `forInstance`: without it nothing is written, so that a command whose file has a key that no instance has read yet makes
 * no MAC that they cannot check.
 */
export async function openMacKey(
  exclusively: Exclusively,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  { forInstance }: { readonly forInstance: boolean },
): Promise<MacKey> {
  const unkeyed = createHmac('sha256', salt).update('markbridge stages').digest()
  return exclusively(async (db) => {
    const kept = await readMeta(db, NAME)
    const [first] = keys
    if (kept === undefined && (first === undefined || !forInstance))
      return { key: unkeyed, unkeyed, keyed: false }
    const keyId = kept?.slice(0, kept.lastIndexOf(' '))
    const key = kept === undefined ? randomBytes(KEY) : unseal(kept, keys)
    if (forInstance && first !== undefined && keyId !== first.id)
      await writeMeta(db, NAME, `${first.id} ${sealed(key, first)}`)
    return { key, unkeyed, keyed: true }
  })
}

function sealed(key: Uint8Array, { id, key: by }: JournalKey): string {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', by, nonce).setAAD(Buffer.from(`${NAME}/${id}`))
  const text = Buffer.concat([cipher.update(key), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')
}

function unseal(kept: string, keys: readonly JournalKey[]): Uint8Array {
  const end = kept.lastIndexOf(' ')
  const by = keys.find(({ id }) => id === kept.slice(0, end))
  if (by === undefined) throw missingKey(kept.slice(0, end))
  const bytes = Buffer.from(kept.slice(end + 1), 'base64')
  try {
    const cipher = createDecipheriv('aes-256-gcm', by.key, bytes.subarray(0, NONCE))
    cipher.setAAD(Buffer.from(`${NAME}/${by.id}`)).setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
    return Buffer.concat([cipher.update(bytes.subarray(NONCE + TAG)), cipher.final()])
  } catch (cause) {
    throw damagedRow(`the key of the MACs of stages was changed: it does not fit key ${by.id}`, cause)
  }
}
