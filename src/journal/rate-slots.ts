import { type Kysely, sql } from 'kysely'

import type { Store } from './store.ts'
import type { JournalTables } from './schema.ts'

/** A rate limit of `calls` calls within any window of `windowMs` milliseconds. */
export interface RateLimit {
  readonly calls: number
  readonly windowMs: number
}

/**
 * A rate limit that all instances of a journal share. Methods that return a promise reject with the errors of `Availability.ask` if the
 * journal cannot be read.
 */
export interface SharedRateLimit {
  /** Returns the time from which no other instance has been alive, by the monotonic clock, or `undefined` while another instance may be alive. */
  aloneSinceMs(): number | undefined
  /** Reserves the next slots under a name. Resolves with the milliseconds until each slot, in order. A reserved slot cannot be given back. */
  reserve(name: string, limit: RateLimit, calls: number): Promise<readonly number[]>
  /** Pauses the slots of a name: no slot is reserved within the next `ms` milliseconds. Never shortens a longer pause. */
  pauseFor(name: string, ms: number): Promise<void>
  /** Returns the milliseconds since the last pause ended. Negative during a pause, or Infinity if the journal stores no pause. */
  sincePauseMs(name: string): Promise<number>
}

interface NextRateSlots {
  readonly reserved: readonly number[]
  /** The latest slots, oldest first, at most as many as one window may contain. */
  readonly kept: readonly number[]
}

/** Returns the next slots. No slot is before `fromMs` or before an earlier slot, and no window contains more than `calls` slots. */
export function nextRateSlots(
  slots: readonly number[],
  { calls, windowMs }: RateLimit,
  count: number,
  fromMs: number,
): NextRateSlots {
  const all = [...slots]
  for (let reserved = 0; reserved < count; reserved += 1) {
    const before = all[all.length - calls] ?? -Infinity
    all.push(Math.ceil(Math.max(fromMs, all.at(-1) ?? -Infinity, before + windowMs)))
  }
  return { reserved: all.slice(all.length - count), kept: all.slice(-calls) }
}

interface SharedRateLimitOptions extends Pick<SharedRateLimit, 'aloneSinceMs'> {
  readonly store: Store
  readonly hashName: (name: string) => string
  readonly ask: <Result>(question: () => Promise<Result>) => Promise<Result>
}

/** Creates the shared rate limit. Slots are measured by the database's clock, so differences between the clocks of instances do not matter. */
export function createSharedRateLimit(options: SharedRateLimitOptions): SharedRateLimit {
  const { store, hashName, ask, aloneSinceMs } = options
  const { db } = store
  const change = <Result>(
    name: string,
    work: (at: Kysely<JournalTables>, key: string, row: SlotRow) => Promise<Result>,
  ): Promise<Result> =>
    ask(() =>
      db.transaction().execute(async (at) => {
        const key = hashName(name)
        return work(at, key, await lockRow(store, at, key))
      }),
    )
  return {
    aloneSinceMs,
    reserve: (name, limit, calls) =>
      change(name, async (at, key, { slots, pausedUntilMs, nowMs }) => {
        const next = nextRateSlots(slots, limit, calls, Math.max(nowMs, pausedUntilMs))
        const idleFrom = Math.ceil((next.kept.at(-1) ?? 0) + limit.windowMs)
        await sql`update journal_rate_slots set slots = ${JSON.stringify(next.kept)}, idle_from = ${idleFrom}
          where name = ${key}`.execute(at)
        return next.reserved.map((atMs) => Math.max(0, atMs - nowMs))
      }),
    pauseFor: (name, ms) =>
      change(name, async (at, key, { pausedUntilMs, nowMs }) => {
        await sql`update journal_rate_slots set paused_until = ${Math.max(pausedUntilMs, nowMs + Math.ceil(ms))}
          where name = ${key}`.execute(at)
      }),
    sincePauseMs: (name) =>
      ask(async () => {
        const { rows } = await sql<{ since: number }>`
          select ${store.nowMs()} - paused_until as since from journal_rate_slots
          where name = ${hashName(name)} and paused_until > 0`.execute(db)
        return rows[0]?.since ?? Infinity
      }),
  }
}

interface SlotRow {
  readonly slots: readonly number[]
  readonly pausedUntilMs: number
  readonly nowMs: number
}

/**
 * Locks the row of one subscription key until the transaction ends. Reads the time once the row is locked, because waiting for the lock
 * takes time.
 */
async function lockRow(store: Store, db: Kysely<JournalTables>, key: string): Promise<SlotRow> {
  await sql`insert into journal_rate_slots (name, slots, paused_until, idle_from) values (${key}, '[]', 0, 0)
    on conflict (name) do nothing`.execute(db)
  const lock = store.dialect === 'postgres' ? sql`for update` : sql``
  const { rows } = await sql<{ slots: string; pausedUntilMs: number }>`
    select slots, paused_until as "pausedUntilMs" from journal_rate_slots where name = ${key} ${lock}`.execute(
    db,
  )
  const time = await sql<{ now: number }>`select ${store.nowMs()} as now`.execute(db)
  const slots: unknown = JSON.parse(rows[0]?.slots ?? '[]')
  return {
    slots: Array.isArray(slots) ? slots.map(Number) : [],
    pausedUntilMs: rows[0]?.pausedUntilMs ?? 0,
    nowMs: time.rows[0]?.now ?? 0,
  }
}
