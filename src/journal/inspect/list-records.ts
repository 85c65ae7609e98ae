import type { Kysely } from 'kysely'

import type { RecordState } from '../journal.ts'
import { recordStates, toAgain } from '../schema/state-codes.ts'
import type { JournalTables } from '../schema/tables.ts'
import { remedyFor } from './remedies.ts'

/** A record as it is listed: what became of it, and nothing of what it says. */
export interface RecordSummary {
  readonly batch: number
  /** From 0; its part in the reply is one more. */
  readonly position: number
  readonly partner: string
  readonly receivedMs: number
  readonly state: RecordState
  readonly reason: string | undefined
  readonly again: 'resend' | number | undefined
  readonly attempts: number
  readonly superseded: boolean
  readonly deadLetter: boolean
  readonly settledMs: number | undefined
}

/** A record that was refused after its client had been told that all is well, and what to do about it. */
export interface DeadLetter extends RecordSummary {
  readonly remedy: string
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
): Promise<readonly DeadLetter[]> {
  const rows = await selectRecords(db)
    .where('r.dead_letter', '=', 1)
    .$if(partner !== undefined, (query) => query.where('b.partner', '=', partner ?? ''))
    .orderBy('r.batch')
    .orderBy('r.position')
    .limit(limit)
    .execute()
  return rows.map((row) => {
    const record = toRecord(row)
    return { ...record, remedy: remedyFor(record.state, record.reason) }
  })
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
  return {
    batch: row.batch,
    position: row.position,
    partner: row.partner,
    receivedMs: row.received_ms,
    state: recordStates[row.state] ?? 'unknown',
    reason: row.reason ?? undefined,
    again: toAgain(row.again),
    attempts: row.attempts,
    superseded: row.superseded === 1,
    deadLetter: row.dead_letter === 1,
    settledMs: row.settled_ms ?? undefined,
  }
}
