import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'

import type { RecordState } from '../journal.ts'
import { recordStates, stateCodes } from '../lifecycle.ts'
import { isClosed } from '../schema/record-sql.ts'
import type { JournalTables } from '../schema/tables.ts'

const CLOSED = sql.raw(isClosed('r.'))

/** The filter of a list of batches; an omitted member does not filter. */
export interface BatchFilter {
  readonly partner?: string | undefined
  /** One of its records is in this state. */
  readonly state?: RecordState | undefined
  /** Received at or after this time (ms since the epoch). */
  readonly sinceMs?: number | undefined
  /** Numbers below this one: the next page of a list. */
  readonly before?: number | undefined
  readonly limit: number
}

/** A batch in a list: counts, without its content. */
export interface BatchSummary {
  readonly batch: number
  readonly partner: string
  readonly receivedMs: number
  readonly records: number
  /** How many records are in which state. */
  readonly states: Readonly<Record<RecordState, number>>
  /** When the next of its records is due; undefined: none is. */
  readonly nextDueMs: number | undefined
  readonly deadLetters: number
}

/** Lists batches, newest first. */
export async function listBatches(
  db: Kysely<JournalTables>,
  filter: BatchFilter,
): Promise<readonly BatchSummary[]> {
  const { partner, state, sinceMs, before, limit } = filter
  const rows = await selectSummaries(db)
    .$if(partner !== undefined, (query) => query.where('b.partner', '=', partner ?? ''))
    .$if(sinceMs !== undefined, (query) => query.where('b.received_ms', '>=', sinceMs ?? 0))
    .$if(before !== undefined, (query) => query.where('b.id', '<', before ?? 0))
    .$if(state !== undefined, (query) =>
      query.where((eb) =>
        eb.exists(
          eb
            .selectFrom('journal_records as s')
            .select('s.batch')
            .whereRef('s.batch', '=', 'b.id')
            .where('s.state', '=', stateCodes[state ?? 'open']),
        ),
      ),
    )
    .orderBy('b.id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toSummary)
}

/** Reads one batch as it would be listed; undefined: it is not kept. */
export async function readSummary(
  db: Kysely<JournalTables>,
  batch: number,
): Promise<BatchSummary | undefined> {
  const row = await selectSummaries(db).where('b.id', '=', batch).executeTakeFirst()
  return row === undefined ? undefined : toSummary(row)
}

interface SummaryRow {
  readonly id: number
  readonly partner: string
  readonly received_ms: number
  readonly states: string | null
  readonly next_due: number | null
  readonly dead_letters: number | string | null
}

type Tables = JournalTables & { b: JournalTables['journal_batches'] }

function selectSummaries(db: Kysely<JournalTables>): SelectQueryBuilder<Tables, 'b', SummaryRow> {
  const due = sql<number | null>`(select min(r.again) from journal_records r
    where r.batch = b.id and r.live = 1 and ${CLOSED} and r.again >= 0)`
  const dead = sql<number | string | null>`(select count(*) from journal_records r
    where r.batch = b.id and r.dead_letter = 1)`
  const states = recordStates.map(
    (_, code) =>
      sql`(select count(*) from journal_records r where r.batch = b.id and r.state = ${sql.lit(code)})`,
  )
  return db
    .selectFrom('journal_batches as b')
    .select(['b.id', 'b.partner', 'b.received_ms'])
    .select([
      sql<string>`${sql.join(states, sql` || ',' || `)}`.as('states'),
      due.as('next_due'),
      dead.as('dead_letters'),
    ])
}

function toSummary(row: SummaryRow): BatchSummary {
  const [open = 0, confirmed = 0, refused = 0, unknown = 0, parked = 0] = (row.states ?? '')
    .split(',')
    .map(Number)
  return {
    batch: row.id,
    partner: row.partner,
    receivedMs: row.received_ms,
    records: open + confirmed + refused + unknown + parked,
    states: { open, confirmed, refused, unknown, parked },
    nextDueMs: row.next_due ?? undefined,
    deadLetters: Number(row.dead_letters ?? 0),
  }
}
