import { type Kysely, sql } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { destroyPeriod, isExpired, PERIOD_MS } from './destroy-periods.ts'
import { createKey, openKey, toEvidenceKey } from './evidence-key.ts'
import type { EvidenceKey, EvidenceScope } from './evidence-store.ts'

/** The running period of a scope with its key; an expired one is destroyed, and the next begins. */
export async function openPeriod(database: JournalDatabase, scope: EvidenceScope): Promise<EvidenceKey> {
  const nowMs = await readNow(database)
  const latest = await readLatest(database.db, scope)
  const kept = latest?.hash_key ?? undefined
  if (latest !== undefined && kept !== undefined && !isExpired(latest, nowMs)) {
    const { id, from_day: from, until_day: until, sealed } = latest
    const secret = openKey(database.macKey, placeOf(scope, latest.period), { hash_key: kept, sealed })
    return toEvidenceKey({ period: id, today: dayOf(nowMs), days: [from, until], secret })
  }
  if (latest !== undefined && kept !== undefined) await destroyPeriod(database, latest.id)
  const period = (latest?.period ?? 0) + 1
  await database.db
    .insertInto('evidence_periods')
    .values({
      ...scope,
      period,
      since_ms: nowMs,
      last_ms: nowMs,
      from_day: latest?.until_day ?? '',
      until_day: dayOf(nowMs + PERIOD_MS),
      ...createKey(database.macKey, placeOf(scope, period)),
      kept: null,
    })
    // Another instance may have begun it.
    .onConflict((conflict) => conflict.columns(['partner', 'stage', 'revision', 'period']).doNothing())
    .execute()
  return openPeriod(database, scope)
}

async function readNow({ db, nowMs }: JournalDatabase): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${nowMs()} as now`.execute(db)
  return Number(rows[0]?.now)
}

function readLatest(
  db: Kysely<JournalTables>,
  { partner, stage, revision }: EvidenceScope,
): Promise<PeriodRow | undefined> {
  return db
    .selectFrom('evidence_periods')
    .select(['id', 'period', 'since_ms', 'from_day', 'until_day', 'hash_key', 'sealed'])
    .where('partner', '=', partner)
    .where('stage', '=', stage)
    .where('revision', '=', revision)
    .orderBy('period', 'desc')
    .limit(1)
    .executeTakeFirst()
}

interface PeriodRow {
  readonly id: number
  readonly period: number
  readonly since_ms: number
  readonly from_day: string
  readonly until_day: string
  readonly hash_key: Uint8Array | null
  readonly sealed: number
}

const placeOf = ({ partner, stage, revision }: EvidenceScope, period: number): string =>
  `${partner}/${stage}/${revision}/${period}`

/** The day of a time, UTC. */
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
