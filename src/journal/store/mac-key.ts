import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

import type { Kysely } from 'kysely'

import type { Exclusively } from '../schema/migrate.ts'
import { readMeta, writeMeta } from '../schema/migrate.ts'
import type { JournalTables } from '../schema/tables.ts'
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
  /** True while the audit trail was not put under the key yet. What the seal says cannot be written without a key of the journal. */
  awaitsTrail(db: Kysely<JournalTables>): Promise<boolean>
  /** Says in the seal that the trail is under the key from now on: one that is not is forged. */
  sealTrail(db: Kysely<JournalTables>): Promise<void>
  /** Puts the sealed key back where it was deleted: without it a command makes MACs that no instance takes. */
  restore(db: Kysely<JournalTables>): Promise<void>
}

/** The name in `journal_meta`: the id of a key, and what it has sealed. */
const NAME = 'mac_key'
const [KEY, NONCE, TAG] = [32, 12, 16]

/** What is bound to the sealed key: whether the trail is under it. */
type Bound = 'mac_key' | 'mac_key of the trail'

interface Unsealed {
  readonly key: Uint8Array
  readonly bound: Bound
  readonly by: JournalKey
}

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
    if (kept === undefined && (first === undefined || !forInstance)) return withoutKey(unkeyed)
    const opened: Unsealed =
      kept === undefined && first !== undefined
        ? { key: randomBytes(KEY), bound: 'mac_key', by: first }
        : unseal(kept ?? '', keys)
    const isNew = forInstance && first !== undefined && (kept === undefined || opened.by.id !== first.id)
    const own = isNew ? { ...opened, by: first } : opened
    if (isNew) await writeMeta(db, NAME, sealed(own))
    return {
      key: own.key,
      unkeyed,
      keyed: true,
      awaitsTrail: async (now) => {
        if (own.bound === 'mac_key of the trail') return false
        const text = await readMeta(now, NAME)
        return text !== undefined && unseal(text, keys).bound === 'mac_key'
      },
      sealTrail: (now) => writeMeta(now, NAME, sealed({ ...own, bound: 'mac_key of the trail' })),
      restore: async (now) => {
        await now
          .insertInto('journal_meta')
          .values({ name: NAME, value: sealed({ ...own, bound: 'mac_key of the trail' }) })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .execute()
      },
    }
  })
}

function withoutKey(unkeyed: Uint8Array): MacKey {
  const nothing = (): Promise<void> => Promise.resolve()
  const awaitsTrail = (): Promise<boolean> => Promise.resolve(false)
  return { key: unkeyed, unkeyed, keyed: false, awaitsTrail, sealTrail: nothing, restore: nothing }
}

function sealed({ key, bound, by }: Unsealed): string {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', by.key, nonce).setAAD(Buffer.from(`${bound}/${by.id}`))
  const text = Buffer.concat([cipher.update(key), cipher.final()])
  return `${by.id} ${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')}`
}

function unseal(kept: string, keys: readonly JournalKey[]): Unsealed {
  const end = kept.lastIndexOf(' ')
  const by = keys.find(({ id }) => id === kept.slice(0, end))
  if (by === undefined) throw missingKey(kept.slice(0, end))
  const bytes = Buffer.from(kept.slice(end + 1), 'base64')
  for (const bound of ['mac_key of the trail', 'mac_key'] as const) {
    const key = open(bytes, by, bound)
    if (key !== undefined) return { key, bound, by }
  }
  throw damagedRow(`the key of the MACs of stages was changed: it does not fit key ${by.id}`)
}

/** Undefined: the bytes were not sealed by this key with this bound to them. */
function open(bytes: Uint8Array, by: JournalKey, bound: Bound): Uint8Array | undefined {
  try {
    const cipher = createDecipheriv('aes-256-gcm', by.key, bytes.subarray(0, NONCE))
    cipher.setAAD(Buffer.from(`${bound}/${by.id}`)).setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
    return Buffer.concat([cipher.update(bytes.subarray(NONCE + TAG)), cipher.final()])
  } catch {
    return undefined
  }
}
