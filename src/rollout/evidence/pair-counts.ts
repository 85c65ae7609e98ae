import { type Kysely, sql } from 'kysely'

import type { JournalTables } from '../../journal/index.ts'
import { CHECK_BITS, type PairCounts } from './evidence-store.ts'

/** Schools that are told apart in what stays of a period. */
const MAX_SCHOOLS = 2_000

const bits = Array.from({ length: CHECK_BITS }, (_, bit) => bit)

interface SchoolRow {
  readonly differing: number
  readonly checks: readonly number[]
}

/** Adds up the pairs of a period. */
export async function readPairCounts(db: Kysely<JournalTables>, period: number): Promise<PairCounts> {
  const sumOf = (bit: number) =>
    sql<number>`sum(case when (checks & ${sql.raw(String(1 << bit))}) <> 0 then 1 else 0 end)`
  const rows = await db
    .selectFrom('evidence_hashes')
    .select([
      sql<number>`sum(case when differs <> 0 then 1 else 0 end)`.as('differing'),
      sumOf(0).as('check0'),
      sumOf(1).as('check1'),
      sumOf(2).as('check2'),
      sumOf(3).as('check3'),
    ])
    .where('period', '=', period)
    .where('school', 'is not', null)
    .groupBy('school')
    .execute()
  return toPairCounts(
    rows.map(({ differing, check0, check1, check2, check3 }) => ({
      differing,
      checks: [check0, check1, check2, check3],
    })),
  )
}

function toPairCounts(schools: readonly SchoolRow[]): PairCounts {
  return {
    differing: schools.reduce((sum, { differing }) => sum + differing, 0),
    schools: bits.map((bit) =>
      schools
        .map(({ checks }) => checks[bit] ?? 0)
        .filter((pairs) => pairs > 0)
        .sort((one, other) => other - one)
        .slice(0, MAX_SCHOOLS),
    ),
  }
}

/** Reads what was kept of a period; undefined: it is not as it was written. */
export function parsePairCounts(text: string | null): PairCounts | undefined {
  const { differing, schools } = membersOf(text)
  if (!isCount(differing) || !Array.isArray(schools) || schools.length !== CHECK_BITS) return undefined
  const lists = schools.map((list: unknown) => (Array.isArray(list) ? list.filter(isCount) : []))
  const isWhole = schools.every(
    (list: unknown, bit) => Array.isArray(list) && list.length === lists[bit]?.length,
  )
  return isWhole ? { differing, schools: lists } : undefined
}

function membersOf(text: string | null): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
