import { sql } from 'kysely'
import * as z from 'zod'

import type { JournalDatabase } from '../../journal/index.ts'
import { parseStored, type Stage, stages } from '../stage.ts'
import { type Db, rowsOf } from '../store/stage-rows.ts'
import { addCounts, type Counts } from './count-name.ts'

/** The stage and revision at which evidence was collected. Evidence of another revision is separate. */
export interface EvidenceScope {
  readonly partner: string
  readonly stage: Stage
  readonly revision: number
}

const BITS = 5
export const COMPARED = 0b111

/** Maximum number of schools whose counts are stored separately once the hashes of a period are deleted. */
const MAX_SCHOOLS = 2_000

const count = z.int().nonnegative()
const pairCounts = z.strictObject({
  pairs: count,
  differing: count,
  /** For each bit of `checkBits`, the number of hashes with this bit in each school, largest first. */
  schools: z.array(z.array(count)).length(BITS),
})

type PairCounts = Readonly<z.infer<typeof pairCounts>>

export interface CountedEvidence {
  readonly scope: EvidenceScope
  /** When the first period of the evidence began, by the clock of the database, in milliseconds since the epoch. */
  readonly sinceMs: number
  readonly lastMs: number
  readonly counts: Counts
}

export interface KeptEvidence extends CountedEvidence {
  readonly periods: readonly PairCounts[]
  /** True if rows were altered. The content of altered rows is left out. */
  readonly damaged: boolean
}

/** Reads all evidence of a partner at one moment, one item per scope, the newest revision first. */
export function readKept({ db }: JournalDatabase, partner: string): Promise<readonly KeptEvidence[]> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return reading.execute(async (at) => {
    const scopes = Map.groupBy(
      await readPeriods(at, partner),
      ({ stage, revision }) => `${revision} ${stage}`,
    )
    const kept: KeptEvidence[] = []
    for (const rows of scopes.values()) {
      const found = await readScope(at, partner, rows)
      if (found !== undefined) kept.push(found)
    }
    return kept
  })
}

interface CountRow {
  readonly partner: string
  readonly stage: string
  readonly revision: number
  readonly sinceMs: number
  readonly lastMs: number
  readonly name: string
  readonly count: number
}

/**
 * Reads the counts of one partner, or of all partners if `partner` is `undefined`, the newest revision first. Does not read the hashes,
 * because there are many.
 */
export async function readCounted(
  { db }: JournalDatabase,
  partner: string | undefined,
): Promise<readonly CountedEvidence[]> {
  const rows = await rowsOf(
    db,
    sql<CountRow>`select p.partner, p.stage, p.revision, p.since_ms as "sinceMs", p.last_ms as "lastMs", c.name, c.count
      from evidence_periods p join evidence_counts c on c.period = p.id
      where ${partner === undefined ? sql`1 = 1` : sql`p.partner = ${partner}`} order by p.revision desc, p.id`,
  )
  const scopes = Map.groupBy(rows, (row) => `${row.revision} ${row.stage} ${row.partner}`)
  return [...scopes.values()].flatMap((own): readonly CountedEvidence[] => {
    const [first, last] = [own[0], own.at(-1)]
    const stage = stages.find((known) => known === first?.stage)
    if (first === undefined || last === undefined || stage === undefined) return []
    const counts = new Map<string, number>()
    const sound = own.filter(({ count: times }) => Number.isSafeInteger(times) && times >= 0)
    addCounts(
      counts,
      sound.map(({ name, count: times }) => [name, times] as const),
    )
    const { revision, sinceMs } = first
    return [{ scope: { partner: first.partner, stage, revision }, sinceMs, lastMs: last.lastMs, counts }]
  })
}

interface PeriodRow {
  readonly id: number
  readonly stage: string
  readonly revision: number
  readonly sinceMs: number
  readonly lastMs: number
  /** The sums of the hashes as JSON, or `null` while the hashes exist. */
  readonly kept: string | null
}

const readPeriods = (db: Db, partner: string): Promise<readonly PeriodRow[]> =>
  rowsOf(
    db,
    sql`select id, stage, revision, since_ms as "sinceMs", last_ms as "lastMs",
        case when hash_key is null then coalesce(kept, '') end as kept
      from evidence_periods where partner = ${partner} order by revision desc, last_ms desc`,
  )

async function readScope(
  db: Db,
  partner: string,
  rows: readonly PeriodRow[],
): Promise<KeptEvidence | undefined> {
  const [first] = rows
  const stage = stages.find((known) => known === first?.stage)
  if (first === undefined || stage === undefined) return undefined
  const periods: PairCounts[] = []
  const counts = new Map<string, number>()
  let damaged = false
  for (const { id, kept } of rows) {
    const counted = kept === null ? await readPairCounts(db, id) : parseStored(pairCounts, kept)
    if (counted === undefined) damaged = true
    else periods.push(counted)
    const own = sql<{
      name: string
      count: number
    }>`select name, count from evidence_counts where period = ${id}`
    for (const { name, count: times } of await rowsOf(db, own)) {
      if (Number.isSafeInteger(times) && times >= 0) addCounts(counts, [[name, times]])
      else damaged = true
    }
  }
  return {
    scope: { partner, stage, revision: first.revision },
    sinceMs: Math.min(...rows.map(({ sinceMs }) => sinceMs)),
    lastMs: Math.max(...rows.map(({ lastMs }) => lastMs)),
    counts,
    periods,
    damaged,
  }
}

export async function readPairCounts(db: Db, period: number): Promise<PairCounts> {
  const rows = await rowsOf(
    db,
    sql<{ school: Uint8Array; checks: number; differs: number; hashes: number }>`
      select school, checks, differs, count(*) as hashes from evidence_hashes
      where period = ${period} and school is not null group by school, checks, differs`,
  )
  const sumOf = (some: typeof rows): number => some.reduce((sum, { hashes }) => sum + hashes, 0)
  const schoolsOf = (bit: number): readonly number[] => {
    const own = rows.filter(({ checks }) => (checks & (1 << bit)) !== 0)
    const bySchool = Map.groupBy(own, ({ school }) => Buffer.from(school).toString('latin1'))
    return [...bySchool.values()].map(sumOf).sort((one, other) => other - one)
  }
  return {
    pairs: sumOf(rows.filter(({ checks }) => (checks & COMPARED) !== 0)),
    differing: sumOf(rows.filter(({ differs }) => differs !== 0)),
    schools: Array.from({ length: BITS }, (_, bit) => schoolsOf(bit).slice(0, MAX_SCHOOLS)),
  }
}
