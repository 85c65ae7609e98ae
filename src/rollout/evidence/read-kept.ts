import type { Kysely } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { stages } from '../stage.ts'
import { type KeptEvidence, MAX_PAIRS, type PairCounts } from './evidence-store.ts'
import { parsePairCounts, readPairCounts } from './pair-counts.ts'

type PeriodRow = Awaited<ReturnType<typeof readPeriods>>[number]

/** The evidence of a partner by scope at one moment, the newest revision first. */
export function readKept({ db }: JournalDatabase, partner: string): Promise<readonly KeptEvidence[]> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return reading.execute(async (at) => {
    const scopes = new Map<string, PeriodRow[]>()
    for (const row of await readPeriods(at, partner)) {
      const name = `${row.revision} ${row.stage}`
      scopes.set(name, [...(scopes.get(name) ?? []), row])
    }
    const kept: KeptEvidence[] = []
    for (const rows of scopes.values()) {
      const found = await readScope(at, partner, rows)
      if (found !== undefined) kept.push(found)
    }
    return kept
  })
}

function readPeriods(db: Kysely<JournalTables>, partner: string) {
  return db
    .selectFrom('evidence_periods')
    .select(['id', 'stage', 'revision', 'since_ms', 'last_ms', 'kept', 'hashes'])
    .select(({ eb }) => eb('hash_key', 'is', null).as('isDestroyed'))
    .where('partner', '=', partner)
    .orderBy('revision', 'desc')
    .orderBy('last_ms', 'desc')
    .execute()
}

async function readScope(
  db: Kysely<JournalTables>,
  partner: string,
  rows: readonly PeriodRow[],
): Promise<KeptEvidence | undefined> {
  const [first] = rows
  const stage = stages.find((known) => known === first?.stage)
  if (first === undefined || stage === undefined) return undefined
  const periods: PairCounts[] = []
  let damaged = false
  for (const { id, isDestroyed, kept } of rows) {
    // SQLite has no booleans.
    const counted = Number(isDestroyed) === 0 ? await readPairCounts(db, id) : parsePairCounts(kept)
    if (counted === undefined) damaged = true
    else periods.push(counted)
  }
  const counts = new Map<string, number>()
  const counted = await db
    .selectFrom('evidence_counts')
    .select(['name', 'count'])
    .where(
      'period',
      'in',
      rows.map(({ id }) => id),
    )
    .execute()
  for (const { name, count } of counted) {
    if (Number.isSafeInteger(count) && count >= 0) counts.set(name, (counts.get(name) ?? 0) + count)
    else damaged = true
  }
  return {
    scope: { partner, stage, revision: first.revision },
    sinceMs: Math.min(...rows.map(({ since_ms: since }) => since)),
    lastMs: Math.max(...rows.map(({ last_ms: last }) => last)),
    counts,
    periods,
    full: rows.some(({ hashes }) => hashes >= MAX_PAIRS),
    damaged,
  }
}
