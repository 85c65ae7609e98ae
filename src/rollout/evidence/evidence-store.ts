import { sql } from 'kysely'

import type { JournalDatabase } from '../../journal/index.ts'
import { type Db, rowsOf } from '../store/stage-rows.ts'
import { addCounts, type Counts } from './count-name.ts'
import { destroyPeriods, lockPeriod, openPeriod, overwriting } from './periods.ts'
import { COMPARED, type EvidenceScope, readCounted, readKept } from './read-kept.ts'

/**
 * Creates the store of the evidence that all instances have collected about partners. The store contains counts and keyed hashes, but no
 * id, name or value. Its functions throw `ADP_JOURNAL_UNAVAILABLE` and `ADP_JOURNAL_DAMAGED`.
 */
export function createEvidenceStore(database: JournalDatabase) {
  const rooms = new Map<number, Room>()
  return {
    /** Returns the key of the current period of a scope. Begins a period if the scope has none or the last period is 90 days old. */
    key: (scope: EvidenceScope) => database.ask(() => openPeriod(database, scope)),
    /** Adds entries to a period. Returns false, and adds nothing, if the period has ended. */
    add: (period: number, entries: readonly EvidenceEntry[]) =>
      database.ask(() => addEntries(database, rooms, period, entries)),
    /** Returns the evidence of a partner, the newest revision first. */
    read: (partner: string) => database.ask(() => readKept(database, partner)),
    /** Returns the counts of a partner, or of all partners, the newest revision first. */
    counts: (partner?: string) => database.ask(() => readCounted(database, partner)),
    /** Destroys keys that are older than 90 days and deletes their hashes. Returns the number of destroyed periods. */
    destroyExpired: () => database.ask(() => destroyPeriods(database)),
  }
}

export type EvidenceStore = ReturnType<typeof createEvidenceStore>

/** A learner-day that was compared, or a record that was written. */
export interface HashedPair {
  readonly hash: Uint8Array
  readonly school: Uint8Array
  readonly checks: number
  readonly differs: number
}

export interface EvidenceEntry {
  /** The hash of the request, so that the counts of a repeated request are added only once. Without this hash the counts are always added. */
  readonly request?: Uint8Array | undefined
  /** Counts by names that reveal nothing about a record, such as `verdict batch reply same`. */
  readonly counts: Counts
  readonly pairs: readonly HashedPair[]
}

/** Maximum number of compared learner-days in a period. Beyond it only differing learner-days are added, so that differences stay visible. */
export const MAX_PAIRS = 50_000
/** Maximum number of differing learner-days that are added beyond `MAX_PAIRS`. */
const ROOM_TO_DIFFER = 5_000
/** Maximum number of hashed requests in a period. Beyond it a repeated request adds its counts again, but never its learner-days. */
const MAX_REQUESTS = 50_000
/** Maximum number of distinct written records in one period, which is more than any step requires. */
export const MAX_WRITTEN = 10_000
/** Maximum number of count names in each group and period. The group is the part of the name before the first space. */
export const MAX_NAMES = 2_500
/** Maximum number of rows in one statement. A row has several values, and SQLite accepts at most 32,766 values in one statement. */
const MAX_ROWS = 1_000

interface HashRow {
  readonly hash: Uint8Array
  /** The hash of the school, or `null` for the hash of a request. */
  readonly school: Uint8Array | null
  readonly checks: number
  readonly differs: number
}

async function addEntries(
  database: JournalDatabase,
  rooms: Map<number, Room>,
  period: number,
  entries: readonly EvidenceEntry[],
): Promise<boolean> {
  let room = rooms.get(period)
  // Removes the cached room of the period until the commit, so that the next call counts the room again if the transaction fails.
  rooms.delete(period)
  // Overwrites freed bytes, because an insert of random hashes splits pages of the file. Otherwise copies of the hashes would stay in the
  // freed parts of these pages after the hashes are deleted.
  const isAdded = await overwriting(database, async (transaction) => {
    if (!(await lockPeriod(database, transaction, period))) return false
    const hashes = entries.flatMap(({ request, pairs }) => [
      ...(request === undefined ? [] : [request]),
      ...pairs.map(({ hash }) => hash),
    ])
    const known = await readKnown(transaction, period, hashes)
    const rows = new Map<string, HashRow>()
    const counts = new Map<string, number>()
    for (const entry of entries) {
      const { request } = entry
      for (const pair of entry.pairs) addRow(rows, pair)
      if (request !== undefined && (known.has(hashText(request)) || rows.has(hashText(request)))) continue
      if (request !== undefined) addRow(rows, { hash: request, school: null, checks: 0, differs: 0 })
      addCounts(counts, entry.counts)
    }
    room = await keepHashes(transaction, period, [...rows.values()], known, room)
    await keepCounts(transaction, period, counts)
    await sql`update evidence_periods set last_ms = ${database.nowMs()} where id = ${period}`.execute(
      transaction,
    )
    return true
  })
  if (isAdded && room !== undefined) rooms.set(period, room)
  return isAdded
}

/** Adds a row, or merges it with the row of the same hash, because one statement cannot change a row twice. */
function addRow(rows: Map<string, HashRow>, row: HashRow): void {
  const before = rows.get(hashText(row.hash))
  const { checks = 0, differs = 0 } = before ?? {}
  rows.set(hashText(row.hash), { ...row, checks: row.checks | checks, differs: row.differs | differs })
}

async function readKnown(
  db: Db,
  period: number,
  hashes: readonly Uint8Array[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  for (const some of chunksOf(hashes)) {
    const found = sql<HashRow>`select hash from evidence_hashes where period = ${period} and hash in (${sql.join(some)})`
    for (const { hash } of await rowsOf(db, found)) known.add(hashText(hash))
  }
  return known
}

/** The number of hashes of each kind that may still be added to a period. */
interface Room {
  requests: number
  pairs: number
  written: number
  /** The number of hashes that this instance has added since it last counted the period. */
  added: number
}

/**
 * Number of added hashes after which an instance counts the hashes of a period again, because other instances also add hashes. More
 * frequent counts would delay commits: for a full period SQLite needs 100 ms.
 */
const COUNTED_EVERY = 1_000

/** Adds new rows as long as there is room for their kind, and updates existing rows. Returns the remaining room. */
async function keepHashes(
  db: Db,
  period: number,
  rows: readonly HashRow[],
  known: ReadonlySet<string>,
  counted: Room | undefined,
): Promise<Room | undefined> {
  const isKnown = ({ hash }: HashRow): boolean => known.has(hashText(hash))
  const isFresh = rows.every(isKnown) || (counted !== undefined && counted.added < COUNTED_EVERY)
  const room = isFresh ? counted && { ...counted } : await readRoom(db, period)
  const kept = rows.filter((row) => {
    if (room === undefined || isKnown(row)) return true
    const kind = row.school === null ? 'requests' : (row.checks & COMPARED) === 0 ? 'written' : 'pairs'
    if (room[kind] <= (row.differs === 0 ? 0 : -ROOM_TO_DIFFER)) return false
    room[kind] -= 1
    room.added += 1
    return true
  })
  for (const some of chunksOf(kept)) {
    const values = some.map(
      ({ hash, school, checks, differs }) => sql`(${period}, ${hash}, ${school}, ${checks}, ${differs})`,
    )
    await sql`insert into evidence_hashes (period, hash, school, checks, differs) values ${sql.join(values)}
      on conflict (period, hash) do update set checks = evidence_hashes.checks | excluded.checks,
        differs = evidence_hashes.differs | excluded.differs`.execute(db)
  }
  return room
}

async function readRoom(db: Db, period: number): Promise<Room> {
  const isPair = sql`(checks & ${sql.lit(COMPARED)}) <> 0`
  const [sizes] = await rowsOf(
    db,
    sql<{
      requests: number
      pairs: number | null
      written: number | null
    }>`select count(*) - count(school) as requests,
      sum(case when ${isPair} then 1 else 0 end) as pairs,
      sum(case when school is not null and not ${isPair} then 1 else 0 end) as written
      from evidence_hashes where period = ${period}`,
  )
  return {
    requests: MAX_REQUESTS - (sizes?.requests ?? 0),
    pairs: MAX_PAIRS - (sizes?.pairs ?? 0),
    written: MAX_WRITTEN - (sizes?.written ?? 0),
    added: 0,
  }
}

async function keepCounts(db: Db, period: number, counts: Counts): Promise<void> {
  const names = await rowsOf(db, sql<{ name: string }>`select name from evidence_counts where period = ${period}`) // prettier-ignore
  const known = new Set(names.map(({ name }) => name))
  const sizes = new Map<string, number>()
  for (const name of known) addCounts(sizes, [[groupOf(name), 1]])
  // Limits each group separately. A client can cause many names in one group, and these must not take the room of other groups.
  const kept = [...counts].filter(([name]) => {
    if (known.has(name)) return true
    addCounts(sizes, [[groupOf(name), 1]])
    return (sizes.get(groupOf(name)) ?? 0) <= MAX_NAMES
  })
  for (const some of chunksOf(kept)) {
    const values = some.map(([name, count]) => sql`(${period}, ${name}, ${count})`)
    await sql`insert into evidence_counts (period, name, count) values ${sql.join(values)}
      on conflict (period, name) do update set count = evidence_counts.count + excluded.count`.execute(db)
  }
}

function chunksOf<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const count = Math.ceil(items.length / MAX_ROWS)
  return Array.from({ length: count }, (_, at) => items.slice(at * MAX_ROWS, (at + 1) * MAX_ROWS))
}

const groupOf = (name: string): string => name.split(' ', 1)[0] ?? ''
const hashText = (hash: Uint8Array): string => Buffer.from(hash).toString('latin1')
