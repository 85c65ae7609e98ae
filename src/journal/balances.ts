import type { Kysely } from 'kysely'

import type { Balance } from './journal.ts'
import type { JournalTables } from './schema/tables.ts'

/** Reads the totals of all partners, by name. */
export async function readBalances(db: Kysely<JournalTables>): Promise<readonly Balance[]> {
  const rows = await db
    .selectFrom('journal_ledger')
    .select('partner')
    .select(({ fn }) => [
      fn.sum<number | string>('open').as('open'),
      fn.sum<number | string>('confirmed').as('confirmed'),
      fn.sum<number | string>('refused').as('refused'),
      fn.sum<number | string>('unknown').as('unknown'),
      fn.sum<number | string>('parked').as('parked'),
    ])
    .groupBy('partner')
    .orderBy('partner')
    .execute()
  return rows.map((row) => {
    const [open, confirmed, refused] = [Number(row.open), Number(row.confirmed), Number(row.refused)]
    const [unknown, parked] = [Number(row.unknown), Number(row.parked)]
    const received = open + confirmed + refused + unknown + parked
    return { partner: row.partner, received, open, confirmed, refused, unknown, parked }
  })
}
