import { type Kysely, sql } from 'kysely'

import type { StoredBatch } from './journal.ts'
import { intactRecord, summedBatchColumns } from './schema/row-sums.ts'
import { recordStates, toAgain } from './schema/state-codes.ts'
import type { JournalTables } from './schema/tables.ts'
import { unpackAnswers } from './store/answer-pack.ts'
import { damagedRecord, expectIntactBatch } from './store/damage.ts'
import { type Unsealing, unseal } from './store/seal.ts'

/** Reads one batch as it is at one moment; undefined: there is none of this number. */
export function readBatch(
  db: Kysely<JournalTables>,
  batch: number,
  how: Unsealing,
): Promise<StoredBatch | undefined> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return reading.execute(async (at) => {
    const row = await at
      .selectFrom('journal_batches')
      .select([...summedBatchColumns, 'sum'])
      .where('id', '=', batch)
      .executeTakeFirst()
    if (row === undefined) return undefined
    expectIntactBatch(batch, row)
    const sealed = ['key_id as keyId', 'body'] as const
    const payload = await at
      .selectFrom('journal_payloads')
      .select(sealed)
      .where('batch', '=', batch)
      .executeTakeFirst()
    const credentials = await at
      .selectFrom('journal_credentials')
      .select(sealed)
      .where('batch', '=', batch)
      .executeTakeFirst()
    const records = await at
      .selectFrom('journal_records')
      .select(['position', 'state', 'again', 'reason', 'superseded', 'attempts'])
      .select(sql.raw<number>(intactRecord()).as('intact'))
      .where('batch', '=', batch)
      .orderBy('position')
      .execute()
    if (records.some(({ intact }) => intact !== 1)) throw damagedRecord(batch)
    const packs = await at
      .selectFrom('journal_answers')
      .select(sealed)
      .where('batch', '=', batch)
      .orderBy('id')
      .execute()
    const of = { batch, owner: row.owner_id }
    const answers = new Map<number, string>()
    for (const pack of packs) unpackAnswers(unseal(pack, how, 'answers', of), answers)
    return {
      batch,
      partner: row.partner,
      owner: row.owner_id,
      receivedMs: row.received_ms,
      payload: payload === undefined ? undefined : unseal(payload, how, 'payload', of),
      credentials:
        credentials === undefined
          ? undefined
          : Buffer.from(unseal(credentials, how, 'credentials', of)).toString(),
      records: records.map(({ position, state, again, reason, superseded, attempts }) => ({
        position,
        state: recordStates[state] ?? 'unknown',
        answer: answers.get(position),
        reason: reason ?? undefined,
        again: toAgain(again),
        superseded: superseded === 1,
        attempts,
      })),
    }
  })
}
