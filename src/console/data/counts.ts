import { sql } from 'kysely'

import { type Db, type Dialect, rowsOf, tableOf } from './schema.ts'
import type { Range } from './port.ts'

export interface Counted {
  readonly atMs: number
  /** The name of the count in words separated by spaces, such as `v3 5xx`. The last word may be any text without spaces. */
  readonly name: string
  readonly count: number
}

/** The time in seconds for which counts are kept, by the length of their intervals in seconds. */
const keptFor = new Map([
  [10, 1_800],
  [60, 10_800],
  [600, 129_600],
  [3_600, 691_200],
])

/** The length in seconds (`grain`) and the number of the intervals of each time range. */
const points: Readonly<Record<Range, { readonly grain: number; readonly count: number }>> = {
  live: { grain: 10, count: 60 },
  hour: { grain: 60, count: 60 },
  day: { grain: 600, count: 144 },
  week: { grain: 3_600, count: 168 },
}

/** Adds each count to the intervals of every length that are still kept. */
export async function addCounts(db: Db, dialect: Dialect, counted: readonly Counted[]) {
  const nowMs = Date.now()
  const rows = new Map<string, { grain: number; at: number; name: string; count: number }>()
  for (const { atMs, name, count } of counted)
    for (const [grain, keptS] of keptFor) {
      const at = Math.floor(atMs / 1_000 / grain) * grain
      // Skips an interval that was already deleted. Otherwise the interval would reappear with this count alone.
      if (count === 0 || at < nowMs / 1_000 - keptS) continue
      const key = `${grain} ${at} ${name}`
      const row = rows.get(key) ?? { grain, at, name, count: 0 }
      row.count += count
      rows.set(key, row)
    }
  if (rows.size === 0) return
  // All instances lock the rows in the same order, so that instances which add counts at the same time cannot deadlock.
  const sorted = [...rows.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
  const table = tableOf(dialect, { grain: 'integer', at: 'bigint', name: 'text', count: 'bigint' }, sorted)
  await sql`insert into console_counts (grain, at, name, count) select grain, at, name, count from ${table} where true
    on conflict (grain, at, name) do update set count = console_counts.count + excluded.count`.execute(db)
}

export async function deleteOldCounts(db: Db): Promise<void> {
  for (const [grain, keptS] of keptFor) {
    const before = Math.floor(Date.now() / 1_000 - keptS)
    await sql`delete from console_counts where grain = ${grain} and at < ${before}`.execute(db)
  }
}

/** The counts of a time range, oldest first. */
export interface RangeCounts {
  readonly fromMs: number
  readonly stepMs: number
  /** The number of intervals. */
  readonly points: number
  /** `index` numbers the intervals from 0. `words` is the name of the count. */
  readonly rows: readonly Readonly<{ index: number; words: readonly string[]; count: number }>[]
}

export async function readCounts(db: Db, range: Range, nowMs: number): Promise<RangeCounts> {
  const { grain, count: length } = points[range]
  const from = Math.floor(nowMs / 1_000 / grain) * grain - (length - 1) * grain
  const rows = await rowsOf<{ at: number; name: string; count: number }>(db)`
    select at, name, count from console_counts where grain = ${grain} and at >= ${from} order by at`
  return {
    ...{ fromMs: from * 1_000, stepMs: grain * 1_000, points: length },
    rows: rows.map(({ at, name, count }) => ({ index: (at - from) / grain, words: name.split(' '), count })),
  }
}
