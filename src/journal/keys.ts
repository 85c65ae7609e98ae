import { createHmac, randomBytes } from 'node:crypto'

import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { readMeta, writeMeta } from './schema.ts'
import { decrypt, encrypt, type JournalKey, keyObjectOf, missingKey, unseal as unsealBlob } from './seal.ts'
import { damagedJournal, damagedRow } from './store-error.ts'
import type { JournalTables } from './schema.ts'

const sealedTables = ['journal_payloads', 'journal_credentials', 'journal_answers'] as const

/**
 * Checks that `keys` can read the whole content of the journal, and stores the first key, which encrypts new content. Deletes keys that
 * no longer encrypt anything. Must run alone. Throws `ADP_CONFIGURATION` with the id of a wrong or missing key, and `ADP_JOURNAL_DAMAGED`
 * for damage that `findKeyDamage` finds.
 */
export async function checkKeys(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  plaintextAccepted: boolean,
): Promise<void> {
  const wrong = keys.find(({ key }) => key.byteLength !== 32)
  if (wrong !== undefined)
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `The journal key ${wrong.id} does not have 32 bytes. Nothing was written. Correct the key in journal.keys.`,
    )
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

/** Returns the error for a key that a row names and the configuration lacks. The row was changed if the journal never had such a key. */
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

export interface KeyDamage {
  readonly damage: string
  /** Rewrites the damaged data. If the key for the MACs of stages is lost, no stage or end of the trail matches its MAC afterwards. */
  mend(db: Kysely<JournalTables>): Promise<void>
}

/**
 * Finds damage to the journal's data about its keys, or returns `undefined` if there is none. A configured key is the journal's own if it
 * decrypts content sealed under its id. Throws `ADP_CONFIGURATION` if another key has the same id.
 */
export async function findKeyDamage(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
): Promise<KeyDamage | undefined> {
  const known = await readKnown(db)
  const sealed = await readMeta(db, NAME)
  const sealer = sealerOf(sealed)
  const by = keys.find(({ id }) => id === sealer)
  const macKey = sealed === undefined || by === undefined ? undefined : await tryUnseal(sealed, by)
  const changed: JournalKey[] = []
  for (const { id, proof } of known) {
    const given = keys.find((key) => key.id === id)
    if (given === undefined || proofOf(given, salt) === proof) continue
    if ((given !== by || macKey === undefined) && !(await canDecrypt(db, given)))
      throw new AdapterError(
        'ADP_CONFIGURATION',
        `The journal was written with another key of the id ${id}. Nothing was changed. Configure that key, and give a new key a new id.`,
      )
    changed.push(given)
  }
  const isKnown = known.some(({ id }) => id === sealer)
  const [first] = keys
  // Without any configured key the MAC key cannot be checked, and nothing is lost.
  const isLost =
    first !== undefined && sealed !== undefined && macKey === undefined && (by !== undefined || !isKnown)
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

/** Returns true if the key decrypts one of the newest requests that were sealed under its id. */
async function canDecrypt(db: Kysely<JournalTables>, key: JournalKey): Promise<boolean> {
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

/** Throws `ADP_CONFIGURATION` if a journal that gets its first key contains plaintext. If a failover lost the key, there is none. */
async function refusePlaintext(db: Kysely<JournalTables>): Promise<void> {
  const { rows } = await sql`select 1 from journal_payloads where key_id is null limit 1`.execute(db)
  if (rows.length === 0) return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    'The journal contains unencrypted requests from before it had keys. Nothing was written. Add { id: plaintext } to journal.keys ' +
      'until journal.replayForMs is over, then remove it.',
  )
}

/** Returns a proof that distinguishes keys and reveals nothing about them. */
const proofOf = ({ key }: JournalKey, salt: Uint8Array): string =>
  createHmac('sha256', key).update('markbridge journal key').update(salt).digest('hex')

/** The key for the MACs of stages and of their audit trail. */
export interface MacKey {
  readonly key: Uint8Array
  /** The key for rows from before the journal had a key. It is derived from the salt. */
  readonly unkeyed: Uint8Array
  /** False if the trail began without a key of the journal, so that any user who can write to the database can make a MAC. */
  readonly keyed: boolean
  /** Stores the sealed key again if it was deleted. Otherwise a command would make MACs that no instance accepts. */
  restore(db: Kysely<JournalTables>): Promise<void>
}

/** The single row that describes the end of the audit trail of stages. Each change of a stage locks it. */
export interface TrailEnd {
  readonly entries: number
  readonly last_mac: string
  /** The first row of the trail whose MAC needs a key of the journal, or null if there is none. */
  readonly keyed_from: number | null
  readonly partners: number
  /** When the trail was last continued from rows that did not match its end, in milliseconds since the epoch, or null if never. */
  readonly repaired_ms: number | null
}

/** Returns the MAC of values in their order. `kind` separates the MACs of different tables. */
export function macOf(key: Uint8Array, kind: string, values: readonly (string | number | null)[]): string {
  return createHmac('sha256', keyObjectOf(key))
    .update(JSON.stringify([kind, ...values]))
    .digest('hex')
}

export const macOfEnd = (key: Uint8Array, end: TrailEnd): string =>
  macOf(key, 'head', [end.entries, end.last_mac, end.keyed_from, end.partners, end.repaired_ms])

/** The name in `journal_meta` of the sealed MAC key: the id of the sealing key, then the ciphertext. */
const NAME = 'mac_key'

const BOUND = 'mac_key of the trail'

/**
 * Opens the MAC key: random bytes that are sealed with a key of the journal, so that they outlive it. If an older key has sealed them,
 * the first key seals them again. A new MAC key is created only for a trail that has not begun. A trail that began without one keeps a
 * key that is derived from the salt.
 *
 * With `forInstance` false nothing is written, so that a command with a key that no instance has read yet makes no MAC that instances
 * cannot check. Must run alone. Throws `ADP_CONFIGURATION` if the sealing key is missing.
 */
export async function openMacKey(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  { forInstance }: { readonly forInstance: boolean },
): Promise<MacKey> {
  const unkeyed = createHmac('sha256', salt).update('markbridge stages').digest()
  const sealed = await readMeta(db, NAME)
  const first = forInstance ? keys[0] : undefined
  const key =
    sealed === undefined ? first && (await beginTrail(db, randomBytes(32))) : await unseal(db, sealed, keys)
  if (key === undefined) return { key: unkeyed, unkeyed, keyed: false, restore: () => Promise.resolve() }
  const text = first === undefined || sealerOf(sealed) === first.id ? sealed : await seal(key, first)
  if (text !== undefined && text !== sealed) await writeMeta(db, NAME, text)
  return {
    key,
    unkeyed,
    keyed: true,
    restore: async (now) => {
      if (text !== undefined && (await readMeta(now, NAME)) === undefined) await writeMeta(now, NAME, text)
    },
  }
}

/** Puts the end of a new trail under a key; later rows without this key are forged. Returns `undefined` if the trail has begun. */
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

const sealerOf = (sealed = ''): string => sealed.slice(0, sealed.lastIndexOf(' '))

async function unseal(
  db: Kysely<JournalTables>,
  sealed: string,
  keys: readonly JournalKey[],
): Promise<Uint8Array> {
  const by = keys.find(({ id }) => id === sealerOf(sealed))
  if (by === undefined) throw await lackingKey(db, sealerOf(sealed), 'the key of the MACs of stages')
  const key = await tryUnseal(sealed, by)
  if (key !== undefined) return key
  throw damagedRow(`the key of the MACs of stages was changed: it does not fit key ${by.id}`)
}

const tryUnseal = (text: string, by: JournalKey): Promise<Uint8Array | undefined> =>
  decrypt(Buffer.from(text.slice(by.id.length + 1), 'base64'), by, `${BOUND}/${by.id}`).catch(() => undefined)
