import { type Kysely, sql } from 'kysely'

import { readBalances } from '../balances.ts'
import type { Balance, RecordState } from '../journal.ts'
import { recordStates } from '../lifecycle.ts'
import { isOpen } from '../schema/record-sql.ts'
import type { JournalTables } from '../schema/tables.ts'

const OPEN = sql.raw(isOpen('r.'))

/** The totals of a partner, set against the records that are kept. */
export interface CheckedBalance extends Balance {
  /** Records in the tables, by state; those of deleted batches are in the totals only. */
  readonly kept: Readonly<Record<RecordState, number>>
  /** False where the totals and the records contradict each other: then the journal is damaged. */
  readonly holds: boolean
}

/**
 * Checks at one moment that every record is counted once: nothing that is open was forgotten, and no state has more records
 * than its total.
 */
export function checkBalances(db: Kysely<JournalTables>): Promise<readonly CheckedBalance[]> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return reading.execute(async (at) => {
    const rows = await at
      .selectFrom('journal_records as r')
      .innerJoin('journal_batches as b', 'b.id', 'r.batch')
      .select(['b.partner', 'r.state', sql<number | string>`count(*)`.as('n')])
      .groupBy(['b.partner', 'r.state'])
      .execute()
    const miscounted = await at
      .selectFrom('journal_batches as b')
      .select('b.partner')
      .where(
        sql<boolean>`b.open <> (select count(*) from journal_records r where r.batch = b.id and ${OPEN})
          or b.live <> (select count(*) from journal_records r where r.batch = b.id and r.live = 1)`,
      )
      .execute()
    const wrong = new Set(miscounted.map(({ partner }) => partner))
    const balances = await readBalances(at)
    return balances.map((balance) => {
      const own = rows.filter(({ partner }) => partner === balance.partner)
      const count = (state: RecordState): number =>
        Number(own.find((row) => recordStates[row.state] === state)?.n ?? 0)
      const kept = {
        open: count('open'),
        confirmed: count('confirmed'),
        refused: count('refused'),
        unknown: count('unknown'),
        parked: count('parked'),
      }
      const fits = recordStates.every((state) => kept[state] <= balance[state])
      return { ...balance, kept, holds: fits && kept.open === balance.open && !wrong.has(balance.partner) }
    })
  })
}
