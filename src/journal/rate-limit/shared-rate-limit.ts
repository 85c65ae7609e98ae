import { type Kysely, sql } from 'kysely'

import type { JournalTables } from '../schema/tables.ts'
import type { Store } from '../store/store.ts'
import { nextRateSlots } from './next-rate-slots.ts'
import type { SharedRateLimit } from './rate-limit.ts'

/** Creates the shared rate limit of a store. Slots are in the time of the database: the clocks of its instances do not matter. */
export function createSharedRateLimit(
  store: Store,
  hashName: (name: string) => Uint8Array,
  ask: <Result>(question: () => Promise<Result>) => Promise<Result>,
): SharedRateLimit {
  return {
    reserve: (name, limit, calls) =>
      ask(() =>
        store.db.transaction().execute(async (db) => {
          const key = Buffer.from(hashName(name))
          const { slots, pausedUntilMs, nowMs } = await lockRow(store, db, key)
          const next = nextRateSlots(slots, limit, calls, Math.max(nowMs, pausedUntilMs))
          await db
            .updateTable('journal_pace')
            .set({
              turns: JSON.stringify(next.kept),
              idle_from: Math.ceil((next.kept.at(-1) ?? 0) + limit.windowMs),
            })
            .where('name', '=', key)
            .execute()
          return next.reserved.map((atMs) => Math.max(0, atMs - nowMs))
        }),
      ),
    pauseFor: (name, ms) =>
      ask(() =>
        store.db.transaction().execute(async (db) => {
          const key = Buffer.from(hashName(name))
          const { nowMs, pausedUntilMs } = await lockRow(store, db, key)
          await db
            .updateTable('journal_pace')
            .set({ held_until: Math.max(pausedUntilMs, nowMs + Math.ceil(ms)) })
            .where('name', '=', key)
            .execute()
        }),
      ),
    sincePauseMs: (name) =>
      ask(async () => {
        const row = await store.db
          .selectFrom('journal_pace')
          .select(['held_until', store.nowMs().as('now')])
          .where('name', '=', Buffer.from(hashName(name)))
          .where('held_until', '>', 0)
          .executeTakeFirst()
        return row === undefined ? Infinity : row.now - row.held_until
      }),
  }
}

interface SlotRow {
  readonly slots: readonly number[]
  readonly pausedUntilMs: number
  readonly nowMs: number
}

/** The row of a key, locked until the transaction ends; the time is read once it is locked. */
async function lockRow(store: Store, db: Kysely<JournalTables>, key: Buffer): Promise<SlotRow> {
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
  const slots: unknown = JSON.parse(row.turns)
  return {
    slots: Array.isArray(slots) ? slots.map(Number) : [],
    pausedUntilMs: row.held_until,
    nowMs: time.rows[0]?.now ?? 0,
  }
}
