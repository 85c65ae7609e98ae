import { sql } from 'kysely'

import { fitTotals, isLive, ofEachState, readBalances, recordStates, stateCodes, stateColumns } from '../../journal/index.ts' // prettier-ignore
import { type RangeCounts, readCounts } from './counts.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type { IndexState, Instance, Overview, PartnerBalance, Range, Scope, Series, StateCounts, Traffic, UnreadableReason } from './port.ts' // prettier-ignore
import { type Db, rowsOf } from './schema.ts'
import { andOf, ofPartners } from './search.ts'
import { findOutages, readTrouble } from './trouble.ts'

const MAX_COUNTED = 100_000

export async function readOverview(database: ConsoleDatabase, range: Range, scope: Scope): Promise<Overview> {
  const { db, nowMs } = database
  const [now] = await rowsOf<{ ms: number }>(db)`select ${nowMs()} as ms`
  const atMs = now?.ms ?? Date.now()
  const known = new Map<Range, Promise<RangeCounts>>()
  const read = (wanted: Range): Promise<RangeCounts> => {
    const counts = known.get(wanted) ?? readCounts(db, wanted, atMs)
    known.set(wanted, counts)
    return counts
  }
  const live = await read('live')
  const trouble = await readTrouble(db, read, scope)
  const report = live.rows.findLast(({ words: [name] }) => name === 'reports')
  return {
    atMs,
    traffic: await readTraffic(db, await read(range), scope),
    balances: await readPartnerBalances(db, trouble, scope),
    instances: await readInstances(database),
    index: await readIndexState(db),
    trouble,
    reportedMs: report && live.fromMs + (report.index + 1) * live.stepMs,
  }
}

const isInScope = (scope: Scope, partner: string): boolean => scope === 'all' || scope.includes(partner) // prettier-ignore

const sums = sql.raw(recordStates.map((state) => `sum(${stateColumns[state]}) as "${state}"`).join())

async function readTraffic(db: Db, counted: RangeCounts, scope: Scope): Promise<Traffic> {
  const { rows, fromMs, stepMs, points } = counted
  const received = await rowsOf<StateCounts & { readonly point: number }>(db)`
    select (received_ms - ${sql.lit(fromMs)}) / ${sql.lit(stepMs)} as point, ${sums} from journal_batches
    where received_ms >= ${sql.lit(fromMs)} and received_ms < ${sql.lit(fromMs + points * stepMs)} ${andOf(ofPartners('partner', scope))}
    group by 1`
  const toSeries = <Name extends string>(name: Name, own: readonly { index: number; count: number }[]): Series<Name> => {
    const counts = Array.from({ length: points }, () => 0)
    for (const { index, count } of own) counts[index] = (counts[index] ?? 0) + count
    return { name, counts }
  } // prettier-ignore
  const calls = rows.filter(({ words: [name] }) => name === 'v3')
  return {
    ...{ fromMs, stepMs, points },
    marks: recordStates
      .map((state) => toSeries(state, received.map((row) => ({ index: row.point, count: row[state] }))))
      .filter(({ counts }) => counts.some((count) => count > 0)),
    calls: [...Map.groupBy(calls, ({ words: [, status = ''] }) => status)].map(([status, own]) => toSeries(status, own)),
    outages: findOutages(counted),
  } // prettier-ignore
}

async function readPartnerBalances(
  db: Db,
  trouble: Overview['trouble'],
  scope: Scope,
): Promise<readonly PartnerBalance[]> {
  const checks = await rowsOf<{ partner: string; holds: number; checkedMs: number }>(db)`
    select partner, holds, checked_ms as "checkedMs" from console_checks`
  const letters = trouble.filter(({ kind }) => kind === 'deadLetters')
  const balances = await readBalances(db)
  const shown = balances.filter(({ partner }) => isInScope(scope, partner))
  return shown.map((balance) => {
    const isOwn = ({ partner }: { readonly partner: string | undefined }): boolean =>
      partner === balance.partner
    const check = checks.find(isOwn)
    const deadLetters = letters.find(isOwn)?.count ?? 0
    return { ...balance, deadLetters, holds: check && check.holds === 1, checkedMs: check?.checkedMs }
  })
}

/**
 * Checks the totals of each partner against the stored records: the numbers of records in flight must be equal, and no state may have more
 * records than its total.
 */
export async function checkBalances({ db, exclusively }: ConsoleDatabase): Promise<void> {
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  const checked = await reading.execute(async (at) => {
    type Kept = StateCounts & { readonly partner: string }
    const kept = await rowsOf<Kept>(at)`select partner, ${sums} from journal_batches group by partner`
    const open = await rowsOf<{ partner: string; records: number }>(at)`
      select b.partner, count(*) as records from journal_batches b
      join journal_records r on r.batch = b.id and r.state = ${sql.lit(stateCodes.open)} where b.open > 0 group by b.partner`
    return (await readBalances(at)).map((balance) => {
      const { partner } = balance
      const own = kept.find((one) => one.partner === partner)
      const inFlight = open.find((one) => one.partner === partner)?.records ?? 0
      const counted = { ...(own ?? ofEachState(() => 0)), open: inFlight }
      return { partner, holds: fitTotals(balance, counted) ? 1 : 0 }
    })
  })
  await exclusively(async (at) => {
    await sql`delete from console_checks`.execute(at)
    for (const { partner, holds } of checked)
      await sql`insert into console_checks (partner, holds, checked_ms) values (${partner}, ${holds}, ${Date.now()})`.execute(at) // prettier-ignore
  })
}

/** Returns true if a partner has records but no check of its balance yet. */
export async function hasUnchecked({ db }: ConsoleDatabase): Promise<boolean> {
  const rows = await rowsOf<object>(db)`
    select 1 from journal_ledger where partner not in (select partner from console_checks) limit 1`
  return rows.length > 0
}

async function readInstances({ db, nowMs }: ConsoleDatabase): Promise<readonly Instance[]> {
  return rowsOf<Instance>(db)`
    select i.id as instance, i.host, i.pid, i.lease_until as "leaseUntilMs",
      case when i.lost = 1 then 'lost' when ${isLive({ nowMs })} then 'live' else 'expired' end as state,
      (select count(*) from journal_batches b where b.instance = i.id and b.open > 0) as "openBatches"
    from journal_instances i order by i.id desc`
}

async function readIndexState(db: Db): Promise<IndexState> {
  const [row] = await rowsOf<{ waiting: number; lostSteps: number }>(db)`
    select lost_steps as "lostSteps",
      (select count(*) from (select 1 from journal_batches b where b.id > i.last_batch limit ${MAX_COUNTED}) n)
      + (select count(*) from (select 1 from console_batches c where c.indexed <> 1 limit ${MAX_COUNTED}) t) as waiting
    from console_index i`
  const unreadable = await rowsOf<{ reason: UnreadableReason; batches: number }>(db)`
    select unreadable as reason, count(*) as batches from console_batches
    where unreadable is not null group by unreadable`
  return { waiting: row?.waiting ?? 0, unreadable, lostSteps: row?.lostSteps ?? 0 }
}
