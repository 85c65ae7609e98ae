import { createHmac, randomBytes } from 'node:crypto'

import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { readMeta, writeMeta } from './schema.ts'
import { decrypt, encrypt, type JournalKey, missingKey, unseal as unsealBlob } from './seal.ts'
import { damagedJournal, damagedRow } from './store-error.ts'
import type { JournalTables } from './schema.ts'

const sealedTables = ['journal_payloads', 'journal_credentials', 'journal_answers'] as const

/**
 * Checks that `keys` can decrypt the whole content of the journal, and stores a proof of the first key, which encrypts new content. Deletes
 * the proofs of keys that are no longer configured and encrypt no content. No other instance may change the journal meanwhile. Throws
 * `ADP_CONFIGURATION` with the id of a wrong or missing key, and `ADP_JOURNAL_DAMAGED` for damage that `findKeyDamage` finds.
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

/**
 * Returns the error for a row whose key is not in the configuration: `ADP_JOURNAL_DAMAGED` if the journal never had the key, because the
 * row must then have been changed.
 */
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
  /**
   * Rewrites the damaged data. If the secret is lost, evidence stored under the secret cannot be opened, and searches find only batches
   * stored later.
   */
  repair(db: Kysely<JournalTables>): Promise<void>
}

/**
 * Finds damage to the journal's data about its keys. Returns `undefined` if there is no damage. A configured key belongs to the journal if
 * it decrypts content that was sealed under its id. Throws `ADP_CONFIGURATION` if another key has the same id.
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
  const secret = sealed === undefined || by === undefined ? undefined : await tryUnseal(sealed, by)
  const changed: JournalKey[] = []
  for (const { id, proof } of known) {
    const given = keys.find((key) => key.id === id)
    if (given === undefined || proofOf(given, salt) === proof) continue
    if ((given !== by || secret === undefined) && !(await canDecrypt(db, given)))
      throw new AdapterError(
        'ADP_CONFIGURATION',
        `The journal was written with a different key under the id ${id}. Nothing was changed. Configure the earlier key under this id, and give the new key another id.`,
      )
    changed.push(given)
  }
  const isKnown = known.some(({ id }) => id === sealer)
  const [first] = keys
  // The secret is lost if the configured key cannot open it, or if the journal never had the key that sealed it. A key that the journal
  // knows but the configuration lacks is not damage.
  const isLost =
    first !== undefined && sealed !== undefined && secret === undefined && (by !== undefined || !isKnown)
  const damage = [
    ...changed.map(({ id }) => `the proof of key ${id} was changed`),
    ...(isLost ? ['the secret of the journal was changed'] : []),
  ].join(', ')
  if (damage === '') return undefined
  return {
    damage,
    repair: async (now) => {
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

/**
 * Throws `ADP_CONFIGURATION` if a stored request is unencrypted. Called if `journal_keys` has no row although keys are configured. If a
 * failover lost only these rows, the stored requests are encrypted, and nothing is thrown.
 */
async function refusePlaintext(db: Kysely<JournalTables>): Promise<void> {
  const { rows } = await sql`select 1 from journal_payloads where key_id is null limit 1`.execute(db)
  if (rows.length === 0) return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    'The journal contains unencrypted requests from before it had keys. Nothing was written. Add { id: plaintext } to journal.keys ' +
      'until journal.replayForMs is over, then remove the entry.',
  )
}

/** Returns a proof that tells the key from other keys and reveals nothing about the key. */
const proofOf = ({ key }: JournalKey, salt: Uint8Array): string =>
  createHmac('sha256', key).update('markbridge journal key').update(salt).digest('hex')

/** The name in `journal_meta` of the sealed secret. Its value is the id of the sealing key, then the ciphertext. */
const NAME = 'secret'

/**
 * Opens the secret of the journal, from which the keys of evidence and of searches derive. The secret is random bytes, sealed with a key of
 * the journal, so that a change of keys does not change the secret. If an older key sealed the secret, the first key seals it again. In a
 * journal without keys the secret is derived from the salt. Once the journal has batches or evidence, keys that are added later do not
 * change the secret, because batches and evidence are stored under that secret.
 *
 * With `forInstance` false nothing is written, so that a command never stores a secret under a key that no instance has. No other instance
 * may change the journal meanwhile. Throws `ADP_CONFIGURATION` if the sealing key is missing.
 */
export async function openSecret(
  db: Kysely<JournalTables>,
  keys: readonly JournalKey[],
  salt: Uint8Array,
  { forInstance }: { readonly forInstance: boolean },
): Promise<Uint8Array> {
  const sealed = await readMeta(db, NAME)
  const first = forInstance ? keys[0] : undefined
  if (sealed === undefined && (first === undefined || (await hasContent(db))))
    return createHmac('sha256', salt).update('markbridge secret').digest()
  const key = sealed === undefined ? randomBytes(32) : await unseal(db, sealed, keys)
  if (first !== undefined && sealerOf(sealed) !== first.id) await writeMeta(db, NAME, await seal(key, first))
  return key
}

const hasContent = async (db: Kysely<JournalTables>): Promise<boolean> =>
  (
    await sql`select 1 where exists (select 1 from journal_batches) or exists (select 1 from evidence_periods)`.execute(
      db,
    )
  ).rows.length > 0

const BOUND = 'secret'

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
  if (by === undefined) throw await lackingKey(db, sealerOf(sealed), 'the secret of the journal')
  const key = await tryUnseal(sealed, by)
  if (key !== undefined) return key
  throw damagedRow(`the secret of the journal was changed: key ${by.id} cannot decrypt it`)
}

const tryUnseal = (text: string, by: JournalKey): Promise<Uint8Array | undefined> =>
  decrypt(Buffer.from(text.slice(by.id.length + 1), 'base64'), by, `${BOUND}/${by.id}`).catch(() => undefined)
