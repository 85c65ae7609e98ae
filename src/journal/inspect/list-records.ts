import type { Kysely } from 'kysely'

import type { RecordState } from '../journal.ts'
import { recordStates, toRetry } from '../lifecycle.ts'
import type { JournalTables } from '../schema/tables.ts'
import { remedyFor } from './remedies.ts'

/** A record in a list: its state and outcome, without its content. */
export interface RecordSummary {
  readonly batch: number
  /** From 0; its part in the reply is one more. */
  readonly position: number
  readonly partner: string
  readonly receivedMs: number
  readonly state: RecordState
  readonly reason: string | undefined
  readonly retry: 'resend' | number | undefined
  readonly attempts: number
  readonly superseded: boolean
  /** True for a dead letter: no longer retried, and its client does not know the outcome. */
  readonly deadLetter: boolean
  readonly settledMs: number | undefined
  /** The remedy of a dead letter. */
  readonly remedy: string | undefined
}

/** Lists the records of one batch, in order. */
export async function listRecords(
  db: Kysely<JournalTables>,
  batch: number,
): Promise<readonly RecordSummary[]> {
  const rows = await selectRecords(db).where('r.batch', '=', batch).orderBy('r.position').execute()
  return rows.map(toRecord)
}

/** Lists dead letters, oldest first. */
export async function listDeadLetters(
  db: Kysely<JournalTables>,
  { partner, limit }: { readonly partner?: string | undefined; readonly limit: number },
): Promise<readonly RecordSummary[]> {
  const rows = await selectRecords(db)
    .where('r.dead_letter', '=', 1)
    .$if(partner !== undefined, (query) => query.where('b.partner', '=', partner ?? ''))
    .orderBy('r.batch')
    .orderBy('r.position')
    .limit(limit)
    .execute()
  return rows.map(toRecord)
}

const selectRecords = (db: Kysely<JournalTables>) =>
  db
    .selectFrom('journal_records as r')
    .innerJoin('journal_batches as b', 'b.id', 'r.batch')
    .select(['r.batch', 'r.position', 'r.state', 'r.reason', 'r.again', 'r.attempts', 'r.superseded'])
    .select(['r.dead_letter', 'r.settled_ms', 'b.partner', 'b.received_ms'])

function toRecord(
  row: Awaited<ReturnType<ReturnType<typeof selectRecords>['executeTakeFirstOrThrow']>>,
): RecordSummary {
  const state = recordStates[row.state] ?? 'unknown'
  const reason = row.reason ?? undefined
  const deadLetter = row.dead_letter === 1
  return {
    batch: row.batch,
    position: row.position,
    partner: row.partner,
    receivedMs: row.received_ms,
    state,
    reason,
    retry: toRetry(row.again),
    attempts: row.attempts,
    superseded: row.superseded === 1,
    deadLetter,
    settledMs: row.settled_ms ?? undefined,
    remedy: deadLetter ? remedyFor(state, reason) : undefined,
  }
}
