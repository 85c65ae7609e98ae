import { type Kysely, sql, type SqlBool } from 'kysely'

import { intactRecord, isIntactBatch, type SummedBatch, summedBatchColumns } from './schema/row-sums.ts'
import type { JournalTables } from './schema/tables.ts'
import { damageOf } from './store/damage.ts'

/** Which batches are checked: those that were received since a time, or have a number above one. */
export interface CheckedRange {
  /** Milliseconds since the epoch. */
  readonly sinceMs: number
  readonly afterBatch: number
  readonly nowMs: number
  /** The newest ones, at the most. */
  readonly batches: number
}

/** The result of a check. */
export interface DamagedRows {
  /** Batches with a row that is not as it was written. */
  readonly batches: number
  /** The newest of them; 0: there is none. */
  readonly newest: number
  /** None of them was received later. */
  readonly receivedMs: number
}

/** Rows of batches that are in memory at a time. */
const PAGE = 1_000

type BatchRow = SummedBatch & { readonly id: number; readonly sum: number | null }

/**
 * Compares the checksums of batches and of their records, the newest first. This also finds a row that no question finds any longer,
 * because a column that it is looked for by was changed.
 */
export async function findDamagedRows(db: Kysely<JournalTables>, range: CheckedRange): Promise<DamagedRows> {
  const found = { batches: 0, newest: 0, receivedMs: 0 }
  // Times of receipt follow the numbers: a batch was received no later than the next one. Its own time may be what was changed.
  let latestMs = range.nowMs
  const isChecked = (id: number): boolean => latestMs >= range.sinceMs || id > range.afterBatch
  const addDamaged = (id: number): void => {
    found.batches += 1
    found.newest = Math.max(found.newest, id)
    found.receivedMs = Math.max(found.receivedMs, latestMs)
  }
  let before = Number.MAX_SAFE_INTEGER
  let left = range.batches
  /** Batches that are read one by one, since one of them cannot be read. */
  let single = 0
  while (left > 0) {
    const page = await readPage(db, before, Math.min(left, single > 0 ? 1 : PAGE))
    if (page === 'unreadable' && single === 0) {
      single = PAGE
      continue
    }
    const { rows, wrong } = page === 'unreadable' ? { rows: [], wrong: new Set<number>() } : page
    for (const row of rows) {
      const isWhole = isIntactBatch(row)
      if (isWhole) latestMs = Math.min(latestMs, row.received_ms)
      if (!isChecked(row.id)) return found
      if (!isWhole || wrong.has(row.id)) addDamaged(row.id)
    }
    const last = page === 'unreadable' ? await readNumber(db, before) : rows.at(-1)?.id
    if (last === undefined) break
    if (page === 'unreadable') addDamaged(last)
    before = last
    left -= Math.max(1, rows.length)
    single = Math.max(0, single - 1)
  }
  return found
}

/** The number of the newest batch below `before`. */
async function readNumber(db: Kysely<JournalTables>, before: number): Promise<number | undefined> {
  const query = db.selectFrom('journal_batches').select('id').where('id', '<', before)
  return (await query.orderBy('id', 'desc').limit(1).executeTakeFirst())?.id
}

async function readPage(
  db: Kysely<JournalTables>,
  before: number,
  limit: number,
): Promise<{ readonly rows: readonly BatchRow[]; readonly wrong: ReadonlySet<number> } | 'unreadable'> {
  try {
    const rows = await db
      .selectFrom('journal_batches')
      .select(['id', ...summedBatchColumns, 'sum'])
      .where('id', '<', before)
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    const [newest, oldest] = [rows[0]?.id ?? 0, rows.at(-1)?.id ?? 0]
    const wrong = await db
      .selectFrom('journal_records')
      .select('batch')
      .distinct()
      .where('batch', '>=', oldest)
      .where('batch', '<=', newest)
      .where(sql.raw<SqlBool>(`${intactRecord()} = 0`))
      .execute()
    return { rows, wrong: new Set(wrong.map(({ batch }) => batch)) }
  } catch (error) {
    if (damageOf(error)?.isolated !== true) throw error
    return 'unreadable'
  }
}
