import { type Kysely, sql } from 'kysely'

import type { JournalTables } from '../schema/tables.ts'
import type { Store } from '../store/store.ts'
import { nextTurns } from './next-turns.ts'
import type { SharedPace } from './pace.ts'

/** Creates the pace of a store, in the time of the database: the clocks of its instances do not matter. */
export function createSharedPace(
  store: Store,
  hashName: (name: string) => Uint8Array,
  ask: <Result>(question: () => Promise<Result>) => Promise<Result>,
): SharedPace {
  return {
    reserve: (name, limit, calls) =>
      ask(() =>
        store.db.transaction().execute(async (db) => {
          const key = Buffer.from(hashName(name))
          const { turns, heldUntilMs, nowMs } = await lockRow(store, db, key)
          const next = nextTurns(turns, limit, calls, Math.max(nowMs, heldUntilMs))
          await db
            .updateTable('journal_pace')
            .set({
              turns: JSON.stringify(next.kept),
              idle_from: Math.ceil((next.kept.at(-1) ?? 0) + limit.windowMs),
            })
            .where('name', '=', key)
            .execute()
          return next.given.map((atMs) => Math.max(0, atMs - nowMs))
        }),
      ),
    hold: (name, ms) =>
      ask(() =>
        store.db.transaction().execute(async (db) => {
          const key = Buffer.from(hashName(name))
          const { nowMs, heldUntilMs } = await lockRow(store, db, key)
          await db
            .updateTable('journal_pace')
            .set({ held_until: Math.max(heldUntilMs, nowMs + Math.ceil(ms)) })
            .where('name', '=', key)
            .execute()
        }),
      ),
  }
}

interface PaceRow {
  readonly turns: readonly number[]
  readonly heldUntilMs: number
  readonly nowMs: number
}

/** The row of a key, which nobody else changes until the transaction ends; the time is read once it is locked. */
async function lockRow(store: Store, db: Kysely<JournalTables>, key: Buffer): Promise<PaceRow> {
  await db
    .insertInto('journal_pace')
    .values({ name: key, turns: '[]', held_until: 0, idle_from: 0 })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  const row = await db
    .selectFrom('journal_pace')
    .select(['turns', 'held_until'])
    .where('name', '=', key)
    .$if(store.dialect === 'postgres', (query) => query.forUpdate())
    .executeTakeFirstOrThrow()
  const time = await sql<{ now: number }>`select ${store.nowMs()} as now`.execute(db)
  const turns: unknown = JSON.parse(row.turns)
  return {
    turns: Array.isArray(turns) ? turns.map(Number) : [],
    heldUntilMs: row.held_until,
    nowMs: time.rows[0]?.now ?? 0,
  }
}
