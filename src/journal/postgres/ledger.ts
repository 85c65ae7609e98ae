import type { PoolClient } from 'pg'

import type { LedgerChanges } from '../store/ledger-changes.ts'

/** Adds changes to the totals, in a row of this writer's own: two that settle at the same time do not wait for each other. */
export async function writeLedger(client: PoolClient, ledger: LedgerChanges, slot: number): Promise<void> {
  const rows = ledger.list()
  if (rows.length === 0) return
  const columns = [0, 1, 2, 3, 4].map((state) => rows.map(([, changes]) => changes[state] ?? 0))
  await client.query({
    name: 'journal-ledger',
    text: `insert into journal_ledger as l (partner, slot, open, confirmed, refused, unknown, parked)
      select p, $2, o, c, r, u, k
      from unnest($1::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
        as n (p, o, c, r, u, k)
      on conflict (partner, slot) do update set open = l.open + excluded.open,
        confirmed = l.confirmed + excluded.confirmed, refused = l.refused + excluded.refused,
        unknown = l.unknown + excluded.unknown, parked = l.parked + excluded.parked`,
    values: [rows.map(([partner]) => partner), slot, ...columns],
  })
}
