import { createHmac, randomBytes } from 'node:crypto'

import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { readMeta, writeMeta } from './schema.ts'
import { decrypt, encrypt, type JournalKey, keyObjectOf, missingKey, unseal as unsealBlob } from './seal.ts'
import { damagedJournal, damagedRow } from './store-error.ts'
import type { JournalTables } from './schema.ts'

/** The tables with encrypted bodies. */
const sealedTables = ['journal_payloads', 'journal_credentials', 'journal_answers'] as const

/**
 * Sees to it that everything that the journal keeps can be read with `keys`, and remembers the first, which encrypts from
 * now on; to be called alone. A key that nothing is encrypted with any longer is forgotten. Errors: `ADP_CONFIGURATION` naming the key's id;
 * `ADP_JOURNAL_DAMAGED` for what `findKeyDamage` finds.
 */
export async function checkKeys(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  plaintextAccepted: boolean,
): Promise<void> {
  const wrong = keys.find(({ key }) => key.byteLength !== 32)
  if (wrong !== undefined)
    throw new AdapterError('ADP_CONFIGURATION', `The journal key ${wrong.id} must have 32 bytes.`)
  const found = await findKeyDamage(db, keys, salt)
  if (found !== undefined) throw damagedJournal(found.damage)
  const known = await readKnown(db)
  if (known.length === 0 && keys.length > 0 && !plaintextAccepted) await refusePlaintext(db)
  for (const { id } of known) {
    if (keys.some((key) => key.id === id)) continue
    for (const table of sealedTables) {
      const { rows } = await sql`select 1 from ${sql.table(table)} where key_id = ${id} limit 1`.execute(db)
      if (rows.length > 0) throw missingKey(id)
    }
    if (sealerOf(await readMeta(db, NAME)) === id) throw missingKey(id)
    await sql`delete from journal_keys where id = ${id}`.execute(db)
  }
  const [first] = keys
  if (first === undefined || known.some(({ id }) => id === first.id)) return
  await sql`insert into journal_keys (id, proof) values (${first.id}, ${proofOf(first, salt)})`.execute(db)
}

/** The error for a key that something names and the configuration lacks: where the journal has never had one of this id, the name was changed. */
export async function lackingKey(db: Kysely<JournalTables>, id: string, what: string): Promise<AdapterError> {
  const isKnown = (await readKnown(db)).some((known) => known.id === id)
  return isKnown ? missingKey(id) : damagedRow(`${what} names a key that the journal has never had`)
}

interface KnownKey {
  readonly id: string
  readonly proof: string
}

const readKnown = async (db: Kysely<JournalTables>): Promise<readonly KnownKey[]> =>
  (await sql<KnownKey>`select id, proof from journal_keys`.execute(db)).rows

/** What a disk has changed of what the journal keeps about its keys. */
export interface KeyDamage {
  readonly damage: string
  /** Writes it anew. Where the key of the MACs of stages is lost, no stage and no end of the trail fits any longer. */
  mend(db: Kysely<JournalTables>): Promise<void>
}

/**
 * Finds what was changed, where the configured keys are those of the journal: what was sealed under the id of a key fits it. Undefined:
 * nothing. Error: `ADP_CONFIGURATION` for another key than that of its id.
 */
export async function findKeyDamage(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
): Promise<KeyDamage | undefined> {
  const known = await readKnown(db)
  const kept = await readMeta(db, NAME)
  const sealer = sealerOf(kept)
  const by = keys.find(({ id }) => id === sealer)
  const macKey = kept === undefined || by === undefined ? undefined : await tryUnseal(kept, by)
  const changed: JournalKey[] = []
  for (const { id, proof } of known) {
    const given = keys.find((key) => key.id === id)
    if (given === undefined || proofOf(given, salt) === proof) continue
    if ((given !== by || macKey === undefined) && !(await opens(db, given)))
      throw new AdapterError(
        'ADP_CONFIGURATION',
        `The journal knows another key of the id ${id}. Give the key it was written with, and a new key a new id.`,
      )
    changed.push(given)
  }
  const isKnown = known.some(({ id }) => id === sealer)
  const [first] = keys
  // Without any key nothing can be said of it, and nothing is lost.
  const isLost =
    first !== undefined && kept !== undefined && macKey === undefined && (by !== undefined || !isKnown)
  const damage = [
    ...changed.map(({ id }) => `what tells key ${id} from others was changed`),
    ...(isLost ? ['the key of the MACs of stages was changed'] : []),
  ].join(', ')
  if (damage === '') return undefined
  return {
    damage,
    mend: async (now) => {
      for (const key of changed)
        await sql`update journal_keys set proof = ${proofOf(key, salt)} where id = ${key.id}`.execute(now)
      if (isLost) await writeMeta(now, NAME, await seal(randomBytes(32), first))
    },
  }
}

/** True where one of the newest requests that were sealed under the id of a key fits it. */
async function opens(db: Kysely<JournalTables>, key: JournalKey): Promise<boolean> {
  const { rows } = await sql<{ batch: number; owner: string; body: Uint8Array }>`
    select p.batch, b.owner, p.body from journal_payloads p join journal_batches b on b.id = p.batch
    where p.key_id = ${key.id} order by p.batch desc limit 3`.execute(db)
  const how = { keys: [key], plaintextAccepted: false }
  for (const { batch, owner, body } of rows) {
    const opened = unsealBlob({ keyId: key.id, body }, how, { kind: 'payload', batch, owner })
    if ((await opened.catch(() => undefined)) !== undefined) return true
  }
  return false
}

/** A journal that gets its first key may have rows that were never encrypted; one that a failover set back has not. */
async function refusePlaintext(db: Kysely<JournalTables>): Promise<void> {
  const { rows } = await sql`select 1 from journal_payloads where key_id is null limit 1`.execute(db)
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
  /** False: the trail began without a key of the journal, so a user who may write the database can make a MAC. */
  readonly keyed: boolean
  /** Puts the sealed key back where it was deleted: without it a command makes MACs that no instance takes. */
  restore(db: Kysely<JournalTables>): Promise<void>
}

/** The end of the audit trail of stages, as its one row has it; each change of a stage locks that. */
export interface TrailEnd {
  readonly entries: number
  readonly last_mac: string
  /** The first row of the trail whose MAC needs a key of the journal; null: none. */
  readonly keyed_from: number | null
  /** How many rows `rollout_stages` has. */
  readonly partners: number
  /** When the trail was last continued from rows that did not fit its end; null: never. */
  readonly repaired_ms: number | null
}

/** The MAC of values in their order; `kind` keeps those of different tables apart. */
export function macOf(key: Uint8Array, kind: string, values: readonly (string | number | null)[]): string {
  return createHmac('sha256', keyObjectOf(key))
    .update(JSON.stringify([kind, ...values]))
    .digest('hex')
}

export const macOfEnd = (key: Uint8Array, end: TrailEnd): string =>
  macOf(key, 'head', [end.entries, end.last_mac, end.keyed_from, end.partners, end.repaired_ms])

/** The name in `journal_meta`: the id of a key, and what it has sealed. */
const NAME = 'mac_key'

/** What is bound to the sealed key. */
const BOUND = 'mac_key of the trail'

/**
 * Opens the MAC key: random bytes that are sealed with a key of the journal, so that they outlive it. Where an older key has sealed them
 * they are sealed anew with the first. It is made for a trail that has not begun, and never later: a trail that was not begun under it has
 * one that is derived from the salt. Error: `ADP_CONFIGURATION` without the key that has sealed it. `forInstance`: without it nothing is
 * written, so that a command whose file has a key that no instance has read yet makes no MAC that they cannot check. To be called alone.
 */
export async function openMacKey(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  { forInstance }: { readonly forInstance: boolean },
): Promise<MacKey> {
  const unkeyed = createHmac('sha256', salt).update('markbridge stages').digest()
  const kept = await readMeta(db, NAME)
  const first = forInstance ? keys[0] : undefined
  const key =
    kept === undefined ? first && (await beginTrail(db, randomBytes(32))) : await unseal(db, kept, keys)
  if (key === undefined) return { key: unkeyed, unkeyed, keyed: false, restore: () => Promise.resolve() }
  const text = first === undefined || sealerOf(kept) === first.id ? kept : await seal(key, first)
  if (text !== undefined && text !== kept) await writeMeta(db, NAME, text)
  return {
    key,
    unkeyed,
    keyed: true,
    restore: async (now) => {
      if (text !== undefined && (await readMeta(now, NAME)) === undefined) await writeMeta(now, NAME, text)
    },
  }
}

/** Puts the end of a trail that has not begun under a key; undefined: it has begun. What is not under the key after that is forged. */
async function beginTrail(db: Kysely<JournalTables>, key: Uint8Array): Promise<Uint8Array | undefined> {
  const end = { entries: 0, last_mac: '', keyed_from: 1, partners: 0, repaired_ms: null }
  const { rows } = await sql`update rollout_head set keyed_from = 1, mac = ${macOfEnd(key, end)}
    where entries = 0 and mac = '' and last_mac = '' and not exists (select 1 from rollout_audit) returning id`.execute(
    db,
  )
  return rows.length === 0 ? undefined : key
}

async function seal(key: Uint8Array, by: JournalKey): Promise<string> {
  return `${by.id} ${(await encrypt(key, by, `${BOUND}/${by.id}`)).toString('base64')}`
}

const sealerOf = (kept = ''): string => kept.slice(0, kept.lastIndexOf(' '))

async function unseal(
  db: Kysely<JournalTables>,
  kept: string,
  keys: readonly JournalKey[],
): Promise<Uint8Array> {
  const by = keys.find(({ id }) => id === sealerOf(kept))
  if (by === undefined) throw await lackingKey(db, sealerOf(kept), 'the key of the MACs of stages')
  const key = await tryUnseal(kept, by)
  if (key !== undefined) return key
  throw damagedRow(`the key of the MACs of stages was changed: it does not fit key ${by.id}`)
}

/** Undefined: it is not as it was sealed with this key. */
const tryUnseal = (kept: string, by: JournalKey): Promise<Uint8Array | undefined> =>
  decrypt(Buffer.from(kept.slice(by.id.length + 1), 'base64'), by, `${BOUND}/${by.id}`).catch(() => undefined)
