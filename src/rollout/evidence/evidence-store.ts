import { sql } from 'kysely'

import type { JournalDatabase } from '../../journal/index.ts'
import { type Db, rowsOf } from '../store/stage-rows.ts'
import { addCounts, type Counts } from './count-name.ts'
import { destroyPeriods, lockPeriod, openPeriod, overwriting } from './periods.ts'
import { COMPARED, type EvidenceScope, readCounted, readKept } from './read-kept.ts'

/**
 * Creates the store of evidence in the database of a journal: what was seen of a partner and compared, over all instances, as counts and keyed
 * hashes; no id, name or value. Errors: `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`.
 */
export function createEvidenceStore(database: JournalDatabase) {
  const rooms = new Map<number, Room>()
  return {
    /** The key of the running period of a scope; a new one begins where there is none, or after 90 days. */
    key: (scope: EvidenceScope) => database.ask(() => openPeriod(database, scope)),
    /** Adds entries, all or none. False: the period has ended meanwhile, and nothing was added. */
    add: (period: number, entries: readonly EvidenceEntry[]) =>
      database.ask(() => addEntries(database, rooms, period, entries)),
    /** The evidence of a partner, the newest revision first. */
    read: (partner: string) => database.ask(() => readKept(database, partner)),
    /** The counts of a partner, or of all, the newest revision first. */
    counts: (partner?: string) => database.ask(() => readCounted(database, partner)),
    /** Destroys keys that are older than 90 days, and deletes their hashes; returns how many. */
    destroyExpired: () => database.ask(() => destroyPeriods(database)),
  }
}

export type EvidenceStore = ReturnType<typeof createEvidenceStore>

/** A learner and day that was compared, or a record that was written. */
export interface HashedPair {
  readonly hash: Uint8Array
  readonly school: Uint8Array
  /** Bits: `checkBits`. */
  readonly checks: number
  readonly differs: number
}

/** What one exchange adds; nothing of it but counts and hashes. */
export interface EvidenceEntry {
  /** Its counts count once for each hash. Undefined: they always count. */
  readonly request?: Uint8Array | undefined
  /** By names without anything of a record, such as `verdict batch reply same`. */
  readonly counts: Counts
  readonly pairs: readonly HashedPair[]
}

/** Pairs of one period; beyond that only those that differ are added, so that a full period never hides a difference. */
export const MAX_PAIRS = 50_000
/** Room for pairs that differ, once `MAX_PAIRS` are there. */
const ROOM_TO_DIFFER = 5_000
/** Requests of one period; beyond this many, their counts count again. Pairs never do. */
const MAX_REQUESTS = 50_000
/** Distinct records that were written in one period: more than any step asks for. */
export const MAX_WRITTEN = 10_000
/** Names of counts of each group in one period; the group is the name up to the first space. */
export const MAX_NAMES = 2_500
/** Rows of one statement: SQLite takes 32,766 values. */
const MAX_ROWS = 1_000

interface HashRow {
  readonly hash: Uint8Array
  /** Null for a request. */
  readonly school: Uint8Array | null
  readonly checks: number
  readonly differs: number
}

/** Adds entries to a period in one transaction; false: the period has ended. */
async function addEntries(
  database: JournalDatabase,
  rooms: Map<number, Room>,
  period: number,
  entries: readonly EvidenceEntry[],
): Promise<boolean> {
  let room = rooms.get(period)
  // They are counted again where this is not committed.
  rooms.delete(period)
  // Pages that split as hashes come would keep copies of them beyond their end.
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
      if (request !== undefined && (known.has(nameOf(request)) || rows.has(nameOf(request)))) continue
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

/** One row for each hash: a statement cannot change a row twice. */
function addRow(rows: Map<string, HashRow>, row: HashRow): void {
  const before = rows.get(nameOf(row.hash))
  const { checks = 0, differs = 0 } = before ?? {}
  rows.set(nameOf(row.hash), { ...row, checks: row.checks | checks, differs: row.differs | differs })
}

async function readKnown(
  db: Db,
  period: number,
  hashes: readonly Uint8Array[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  for (const some of chunksOf(hashes)) {
    const found = sql<HashRow>`select hash from evidence_hashes where period = ${period} and hash in (${sql.join(some)})`
    for (const { hash } of await rowsOf(db, found)) known.add(nameOf(hash))
  }
  return known
}

/** How many hashes of each kind may still be added to a period. */
interface Room {
  requests: number
  pairs: number
  written: number
  /** Added by this instance since they were counted. */
  added: number
}

/**
 * The hashes of a period are counted again after this instance has added this many, since other instances add some, too. Counting a full
 * period takes SQLite 100 ms, in the thread that commits.
 */
const COUNTED_EVERY = 1_000

/** Adds rows, or what is new of those that are there, as far as there is room for each kind; gives the room that is left. */
async function keepHashes(
  db: Db,
  period: number,
  rows: readonly HashRow[],
  known: ReadonlySet<string>,
  counted: Room | undefined,
): Promise<Room | undefined> {
  const isKnown = ({ hash }: HashRow): boolean => known.has(nameOf(hash))
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
  // By group: names that clients can multiply leave room for all others.
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
const nameOf = (hash: Uint8Array): string => Buffer.from(hash).toString('latin1')
