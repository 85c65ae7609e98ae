import { createHmac, randomBytes } from 'node:crypto'

import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { readMeta, writeMeta } from './schema.ts'
import { decrypt, encrypt, type JournalKey, missingKey } from './seal.ts'
import type { Exclusively } from './store.ts'
import { damagedRow } from './store-error.ts'
import type { JournalTables } from './schema.ts'

/** The tables with encrypted bodies. */
const sealedTables = ['journal_payloads', 'journal_credentials', 'journal_answers'] as const

/**
 * Sees to it that everything that the journal keeps can be read with `keys`, and remembers the first, which encrypts from
 * now on. A key that nothing is encrypted with any longer is forgotten. Error: `ADP_CONFIGURATION` naming the key's id.
 */
export async function checkKeys(
  exclusively: Exclusively,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  plaintextAccepted: boolean,
): Promise<void> {
  const wrong = keys.find(({ key }) => key.byteLength !== 32)
  if (wrong !== undefined)
    throw new AdapterError('ADP_CONFIGURATION', `The journal key ${wrong.id} must have 32 bytes.`)
  await exclusively(async (db) => {
    const { rows: known } = await sql<{
      id: string
      proof: string
    }>`select id, proof from journal_keys`.execute(db)
    if (known.length === 0 && keys.length > 0 && !plaintextAccepted) await refusePlaintext(db)
    for (const { id, proof } of known) {
      const given = keys.find((key) => key.id === id)
      if (given !== undefined) {
        if (proofOf(given, salt) === proof) continue
        throw new AdapterError(
          'ADP_CONFIGURATION',
          `The journal knows another key of the id ${id}. Give the key it was written with, and a new key a new id.`,
        )
      }
      for (const table of sealedTables) {
        const { rows } = await sql`select 1 from ${sql.table(table)} where key_id = ${id} limit 1`.execute(db)
        if (rows.length > 0) throw missingKey(id)
      }
      await sql`delete from journal_keys where id = ${id}`.execute(db)
    }
    const [first] = keys
    if (first === undefined || known.some(({ id }) => id === first.id)) return
    await sql`insert into journal_keys (id, proof) values (${first.id}, ${proofOf(first, salt)})`.execute(db)
  })
}

/** A journal that gets its first key has rows that were never encrypted. */
async function refusePlaintext(db: Kysely<JournalTables>): Promise<void> {
  const { rows } = await sql`select 1 from journal_payloads limit 1`.execute(db)
  if (rows.length === 0) return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    'The journal holds requests from before it had keys, which are not encrypted. Add { id: plaintext } to journal.keys until ' +
      'journal.replayForMs is over, then take it out.',
  )
}

/** Tells keys apart without telling anything of them. */
const proofOf = ({ key }: JournalKey, salt: Uint8Array): string =>
  createHmac('sha256', key).update('markbridge journal key').update(salt).digest('hex')

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
        ? { key: randomBytes(32), bound: 'mac_key', by: first }
        : await unseal(kept ?? '', keys)
    const isNew = forInstance && first !== undefined && (kept === undefined || opened.by.id !== first.id)
    const own = isNew ? { ...opened, by: first } : opened
    if (isNew) await writeMeta(db, NAME, await sealed(own))
    return {
      key: own.key,
      unkeyed,
      keyed: true,
      awaitsTrail: async (now) => {
        if (own.bound === 'mac_key of the trail') return false
        const text = await readMeta(now, NAME)
        return text !== undefined && (await unseal(text, keys)).bound === 'mac_key'
      },
      sealTrail: async (now) => writeMeta(now, NAME, await sealed({ ...own, bound: 'mac_key of the trail' })),
      restore: async (now) => {
        if ((await readMeta(now, NAME)) !== undefined) return
        await writeMeta(now, NAME, await sealed({ ...own, bound: 'mac_key of the trail' }))
      },
    }
  })
}

function withoutKey(unkeyed: Uint8Array): MacKey {
  const nothing = (): Promise<void> => Promise.resolve()
  const awaitsTrail = (): Promise<boolean> => Promise.resolve(false)
  return { key: unkeyed, unkeyed, keyed: false, awaitsTrail, sealTrail: nothing, restore: nothing }
}

async function sealed({ key, bound, by }: Unsealed): Promise<string> {
  return `${by.id} ${(await encrypt(key, by, `${bound}/${by.id}`)).toString('base64')}`
}

async function unseal(kept: string, keys: readonly JournalKey[]): Promise<Unsealed> {
  const end = kept.lastIndexOf(' ')
  const by = keys.find(({ id }) => id === kept.slice(0, end))
  if (by === undefined) throw missingKey(kept.slice(0, end))
  const bytes = Buffer.from(kept.slice(end + 1), 'base64')
  for (const bound of ['mac_key of the trail', 'mac_key'] as const) {
    const key = await decrypt(bytes, by, `${bound}/${by.id}`).catch(() => undefined)
    if (key !== undefined) return { key, bound, by }
  }
  throw damagedRow(`the key of the MACs of stages was changed: it does not fit key ${by.id}`)
}
