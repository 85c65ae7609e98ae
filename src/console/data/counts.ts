import { sql } from 'kysely'

import { type Db, type Dialect, rowsOf, tableOf } from './schema.ts'
import type { Range } from './port.ts'

/** Something that was counted at a time. */
export interface Counted {
  readonly atMs: number
  /** Words; the last one may have any text without blanks. */
  readonly name: string
  readonly count: number
}

/** How long counts are kept, by the stretch that they are counted for, seconds. */
const keptFor = new Map([
  [10, 1_800],
  [60, 10_800],
  [600, 129_600],
  [3_600, 691_200],
])

/** The points of each range, seconds. */
const points: Readonly<Record<Range, { readonly grain: number; readonly count: number }>> = {
  live: { grain: 10, count: 60 },
  hour: { grain: 60, count: 60 },
  day: { grain: 600, count: 144 },
  week: { grain: 3_600, count: 168 },
}

/** Adds counts for each stretch that is still kept; `finest`: the shortest that they are known for, seconds. */
export async function addCounts(db: Db, dialect: Dialect, counted: readonly Counted[], finest = 10) {
  const nowMs = Date.now()
  const rows = new Map<string, { grain: number; at: number; name: string; count: number }>()
  for (const { atMs, name, count } of counted)
    for (const [grain, keptS] of keptFor) {
      const at = Math.floor(atMs / 1_000 / grain) * grain
      // A change of what is deleted already would be all that is left of it.
      if (grain < finest || count === 0 || at < nowMs / 1_000 - keptS) continue
      const key = `${grain} ${at} ${name}`
      const row = rows.get(key) ?? { grain, at, name, count: 0 }
      row.count += count
      rows.set(key, row)
    }
  if (rows.size === 0) return
  // In one order: instances that add at the same time wait for each other, and never in a ring.
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

/** Counts of a range whose names begin with a word; `index` from 0, oldest first. */
export async function readCounts(db: Db, range: Range, nowMs: number, finest = 10) {
  const own = points[range]
  const grain = Math.max(own.grain, finest)
  const length = Math.round((own.count * own.grain) / grain)
  const from = Math.floor(nowMs / 1_000 / grain) * grain - (length - 1) * grain
  const rows = await rowsOf<{ at: number; name: string; count: number }>(db)`
    select at, name, count from console_counts where grain = ${grain} and at >= ${from} order by at`
  return {
    ...{ fromMs: from * 1_000, stepMs: grain * 1_000, points: length },
    rows: rows.map(({ at, name, count }) => ({ index: (at - from) / grain, words: name.split(' '), count })),
  }
}
