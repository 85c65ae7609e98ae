import { sql, type Transaction } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { type EvidenceEntry, type HashedPair, MAX_NAMES, MAX_PAIRS } from './evidence-store.ts'
import { overwriting } from './overwriting.ts'

type Db = Transaction<JournalTables>

/** Requests are hashes beside the pairs; beyond this many, their counts count again. Pairs never do. */
const MAX_REQUESTS = 50_000
/** Room for pairs that differ, once `MAX_PAIRS` are there. */
const ROOM_TO_DIFFER = 5_000
/** Rows of one statement. */
const CHUNK = 500

/** Adds entries to a period in one transaction; false: the period has ended. */
export function addEntries(
  database: JournalDatabase,
  period: number,
  entries: readonly EvidenceEntry[],
): Promise<boolean> {
  const { dialect, nowMs } = database
  // Pages that split as hashes come would keep copies of them beyond their end.
  return overwriting(database, async (transaction) => {
    const row = await transaction
      .selectFrom('evidence_periods')
      .select(['hash_key', 'hashes'])
      .where('id', '=', period)
      // Two instances add one after the other.
      .$if(dialect === 'postgres', (query) => query.forUpdate())
      .executeTakeFirst()
    if (row === undefined || row.hash_key === null) return false
    const requests = await addRequests(transaction, period, entries)
    const added = await addPairs(transaction, period, row.hashes, merged(entries))
    await addCounts(transaction, period, requests)
    await transaction
      .updateTable('evidence_periods')
      .set({ hashes: row.hashes + added, last_ms: nowMs() })
      .where('id', '=', period)
      .execute()
    return true
  })
}

/** Keeps the hashes of requests; returns the counts of those that were not known. */
async function addRequests(
  db: Db,
  period: number,
  entries: readonly EvidenceEntry[],
): Promise<ReadonlyMap<string, number>> {
  const hashes = entries.flatMap(({ request }) => (request === undefined ? [] : [request]))
  const known = await readKnown(db, period, hashes)
  const fresh = new Map<string, Uint8Array>()
  const counts = new Map<string, number>()
  for (const entry of entries) {
    if (entry.request !== undefined) {
      const name = nameOf(entry.request)
      if (known.has(name) || fresh.has(name)) continue
      fresh.set(name, entry.request)
    }
    for (const [name, count] of entry.counts) counts.set(name, (counts.get(name) ?? 0) + count)
  }
  const { n: kept } = await db
    .selectFrom('evidence_hashes')
    .select(({ fn }) => fn.countAll<number>().as('n'))
    .where('period', '=', period)
    .where('school', 'is', null)
    .executeTakeFirstOrThrow()
  const rows = [...fresh.values()].slice(0, Math.max(0, MAX_REQUESTS - kept))
  for (const chunk of chunksOf(rows)) {
    await db
      .insertInto('evidence_hashes')
      .values(chunk.map((hash) => ({ period, hash, school: null, checks: 0, differs: 0 })))
      .execute()
  }
  return counts
}

/** Adds pairs, or what is new of them; returns how many were not known. */
async function addPairs(
  db: Db,
  period: number,
  kept: number,
  pairs: ReadonlyMap<string, HashedPair>,
): Promise<number> {
  const known = await readKnown(
    db,
    period,
    [...pairs.values()].map(({ hash }) => hash),
  )
  let size = kept
  const rows = [...pairs].filter(([name, { differs }]) => {
    if (known.has(name)) return true
    const room = differs === 0 ? MAX_PAIRS : MAX_PAIRS + ROOM_TO_DIFFER
    if (size >= room) return false
    size += 1
    return true
  })
  for (const chunk of chunksOf(rows)) {
    await db
      .insertInto('evidence_hashes')
      .values(chunk.map(([, pair]) => ({ period, ...pair })))
      .onConflict((conflict) =>
        conflict.columns(['period', 'hash']).doUpdateSet({
          checks: sql<number>`evidence_hashes.checks | excluded.checks`,
          differs: sql<number>`evidence_hashes.differs | excluded.differs`,
        }),
      )
      .execute()
  }
  return size - kept
}

async function addCounts(db: Db, period: number, counts: ReadonlyMap<string, number>): Promise<void> {
  if (counts.size === 0) return
  const names = await db.selectFrom('evidence_counts').select('name').where('period', '=', period).execute()
  const known = new Set(names.map(({ name }) => name))
  const sizes = new Map<string, number>()
  for (const name of known) sizes.set(groupOf(name), (sizes.get(groupOf(name)) ?? 0) + 1)
  // By group: names that clients can multiply leave room for all others.
  const rows = [...counts].filter(([name]) => {
    const size = sizes.get(groupOf(name)) ?? 0
    if (known.has(name)) return true
    if (size < MAX_NAMES) sizes.set(groupOf(name), size + 1)
    return size < MAX_NAMES
  })
  for (const chunk of chunksOf(rows)) {
    await db
      .insertInto('evidence_counts')
      .values(chunk.map(([name, count]) => ({ period, name, count })))
      .onConflict((conflict) =>
        conflict
          .columns(['period', 'name'])
          .doUpdateSet({ count: sql<number>`evidence_counts.count + excluded.count` }),
      )
      .execute()
  }
}

async function readKnown(
  db: Db,
  period: number,
  hashes: readonly Uint8Array[],
): Promise<ReadonlySet<string>> {
  const known = new Set<string>()
  for (const chunk of chunksOf(hashes)) {
    const rows = await db
      .selectFrom('evidence_hashes')
      .select('hash')
      .where('period', '=', period)
      .where('hash', 'in', chunk)
      .execute()
    for (const { hash } of rows) known.add(nameOf(hash))
  }
  return known
}

/** One row for each pair: a statement cannot change a row twice. */
function merged(entries: readonly EvidenceEntry[]): ReadonlyMap<string, HashedPair> {
  const pairs = new Map<string, HashedPair>()
  for (const pair of entries.flatMap((entry) => entry.pairs)) {
    const name = nameOf(pair.hash)
    const before = pairs.get(name)
    pairs.set(
      name,
      before === undefined
        ? pair
        : { ...before, checks: before.checks | pair.checks, differs: before.differs | pair.differs },
    )
  }
  return pairs
}

const groupOf = (name: string): string => name.slice(0, name.indexOf(' '))

const nameOf = (hash: Uint8Array): string => Buffer.from(hash).toString('base64')

function chunksOf<Row>(rows: readonly Row[]): readonly (readonly Row[])[] {
  return Array.from({ length: Math.ceil(rows.length / CHUNK) }, (_, at) =>
    rows.slice(at * CHUNK, (at + 1) * CHUNK),
  )
}
