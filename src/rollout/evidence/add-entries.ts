import { type RawBuilder, sql, type Transaction } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { type EvidenceEntry, type HashedPair, MAX_NAMES, MAX_PAIRS } from './evidence-store.ts'
import { overwriting } from './overwriting.ts'

/** A transaction, and the SQL of its database. */
interface Db {
  readonly transaction: Transaction<JournalTables>
  readonly dialect: JournalDatabase['dialect']
}

/** Requests are hashes beside the pairs; beyond this many, their counts count again. Pairs never do. */
const MAX_REQUESTS = 50_000
/** Room for pairs that differ, once `MAX_PAIRS` are there. */
const ROOM_TO_DIFFER = 5_000

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
    const db = { transaction, dialect }
    const requests = await addRequests(db, period, entries)
    const added = await addPairs(db, period, row.hashes, merged(entries))
    await addCounts(db, period, requests)
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
  const { n: kept } = await db.transaction
    .selectFrom('evidence_hashes')
    .select(({ fn }) => fn.countAll<number>().as('n'))
    .where('period', '=', period)
    .where('school', 'is', null)
    .executeTakeFirstOrThrow()
  const rows = [...fresh.values()].slice(0, Math.max(0, MAX_REQUESTS - kept))
  await insertHashes(
    db,
    period,
    rows.map((hash) => ({ hash, school: undefined, checks: 0, differs: 0 })),
  )
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
  await insertHashes(
    db,
    period,
    rows.map(([, pair]) => pair),
  )
  return size - kept
}

/** Adds hashes, or what is new of those that are there. */
async function insertHashes(
  db: Db,
  period: number,
  rows: readonly (Omit<HashedPair, 'school'> & { readonly school: Uint8Array | undefined })[],
): Promise<void> {
  if (rows.length === 0) return
  const given = rows.map(({ hash, school, checks, differs }) => [
    toHex(hash),
    school && toHex(school),
    checks,
    differs,
  ])
  const [hash, school, checks, differs] = [0, 1, 2, 3].map((at) => member(db, at))
  await sql`insert into evidence_hashes (period, hash, school, checks, differs)
    select ${sql.lit(period)}, ${bytes(db, hash)}, ${bytes(db, school)}, ${whole(checks)}, ${whole(differs)}
    from ${rowsOf(db, given)} where true
    on conflict (period, hash) do update set
      checks = evidence_hashes.checks | excluded.checks, differs = evidence_hashes.differs | excluded.differs`.execute(
    db.transaction,
  )
}

async function addCounts(db: Db, period: number, counts: ReadonlyMap<string, number>): Promise<void> {
  if (counts.size === 0) return
  const names = await db.transaction
    .selectFrom('evidence_counts')
    .select('name')
    .where('period', '=', period)
    .execute()
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
  await sql`insert into evidence_counts (period, name, count)
    select ${sql.lit(period)}, ${member(db, 0)}, ${whole(member(db, 1))} from ${rowsOf(db, rows)} where true
    on conflict (period, name) do update set count = evidence_counts.count + excluded.count`.execute(
    db.transaction,
  )
}

async function readKnown(
  db: Db,
  period: number,
  hashes: readonly Uint8Array[],
): Promise<ReadonlySet<string>> {
  if (hashes.length === 0) return new Set()
  const given = hashes.map((hash) => [toHex(hash)])
  const rows = await db.transaction
    .selectFrom('evidence_hashes')
    .select('hash')
    .where('period', '=', period)
    .where('hash', 'in', sql<Uint8Array>`(select ${bytes(db, member(db, 0))} from ${rowsOf(db, given)})`)
    .execute()
  return new Set(rows.map(({ hash }) => nameOf(hash)))
}

type Sql = RawBuilder<unknown>

// Rows go as one JSON text: a parameter for each value takes longer to compile than the rows to write, on the loop that serves clients.
const rowsOf = ({ dialect }: Db, rows: readonly (readonly unknown[])[]): Sql =>
  dialect === 'postgres'
    ? sql`jsonb_array_elements(${JSON.stringify(rows)}::jsonb) as given (value)`
    : sql`json_each(${JSON.stringify(rows)}) as given`

/** A member of a row, as text where the database has types. */
const member = ({ dialect }: Db, at: number): Sql =>
  dialect === 'postgres' ? sql`given.value ->> ${sql.lit(at)}` : sql`given.value ->> ${sql.lit(`$[${at}]`)}`

const bytes = ({ dialect }: Db, hex: Sql | undefined): Sql =>
  dialect === 'postgres' ? sql`decode(${hex}, 'hex')` : sql`unhex(${hex})`

const whole = (number: Sql | undefined): Sql => sql`cast(${number} as bigint)`

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

const nameOf = (hash: Uint8Array): string => Buffer.from(hash).toString('latin1')

const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
