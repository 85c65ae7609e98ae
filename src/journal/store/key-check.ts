import { createHmac, timingSafeEqual } from 'node:crypto'

import type { Kysely } from 'kysely'

import { AdapterError } from '../../errors.ts'
import type { Exclusively } from '../schema/migrate.ts'
import type { JournalTables } from '../schema/tables.ts'
import { missingKey } from './seal.ts'
import type { JournalKey } from './store.ts'

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
  await exclusively(async (db) => {
    const known = await db.selectFrom('journal_keys').selectAll().execute()
    if (known.length === 0 && keys.length > 0 && !plaintextAccepted) await refusePlaintext(db)
    for (const { id, proof } of known) {
      const given = keys.find((key) => key.id === id)
      if (given !== undefined) {
        if (timingSafeEqual(proofOf(given, salt), proof)) continue
        throw new AdapterError(
          'ADP_CONFIGURATION',
          `The journal knows another key of the id ${id}. Give the key it was written with, and a new key a new id.`,
        )
      }
      for (const table of sealedTables) {
        const row = await db.selectFrom(table).select('batch').where('key_id', '=', id).limit(1).execute()
        if (row.length > 0) throw missingKey(id)
      }
      await db.deleteFrom('journal_keys').where('id', '=', id).execute()
    }
    const [first] = keys
    if (first === undefined || known.some(({ id }) => id === first.id)) return
    await db
      .insertInto('journal_keys')
      .values({ id: first.id, proof: proofOf(first, salt) })
      .execute()
  })
}

/** A journal that gets its first key has rows that were never encrypted. */
async function refusePlaintext(db: Kysely<JournalTables>): Promise<void> {
  const row = await db.selectFrom('journal_payloads').select('batch').limit(1).executeTakeFirst()
  if (row === undefined) return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    'The journal holds requests from before it had keys, which are not encrypted. Add { id: plaintext } to journal.keys until ' +
      'journal.replayForMs is over, then take it out.',
  )
}

/** Tells keys apart without telling anything of them. */
function proofOf({ key }: JournalKey, salt: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update('markbridge journal key').update(salt).digest()
}
