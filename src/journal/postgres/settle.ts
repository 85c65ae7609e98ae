import type { PoolClient } from 'pg'

import { changeOfBatch, changeOfRecord } from '../schema/row-sums.ts'
import { packAnswers } from '../store/answer-pack.ts'
import type { LedgerChanges } from '../store/ledger-changes.ts'
import type { SettleOperation } from '../store/operations.ts'
import { sealAside } from '../store/seal.ts'
import type { WriteContext } from './context.ts'
import { type SealedRow, writeSealed } from './sealed-rows.ts'

/** One outcome with the place of its operation in the group. */
interface Outcome {
  readonly operation: number
  readonly batch: number
  readonly lease: number | undefined
  readonly position: number
  readonly state: number
  readonly again: number | null
  readonly reason: string | null
  readonly deadLetter: number
  readonly superseded: number
  readonly answer: string | undefined
}

/** A batch of this instance. */
interface OwnedBatch {
  readonly partner: string
  readonly owner_id: string
}

interface Counts {
  open: number
  live: number
}

/**
 * Settles records. Gives the operations that are lost, by their places; where rows of them were changed, `late` is true, and
 * the transaction has to be run again without them.
 */
export async function settleRecords(
  client: PoolClient,
  context: WriteContext,
  ledger: LedgerChanges,
  operations: readonly (SettleOperation | undefined)[],
): Promise<{ readonly lost: ReadonlySet<number>; readonly late: boolean }> {
  const outcomes = operations.flatMap(toOutcomes)
  const owned = await lockOwned(client, context.instance, outcomes)
  const changed = await writeOutcomes(
    client,
    context,
    outcomes.filter(
      ({ batch, lease }) => owned.has(batch) && (lease === undefined || lease === context.instance),
    ),
  )
  const kept = new Set(changed)
  const lost = await findLost(
    client,
    outcomes.filter((outcome) => !kept.has(outcome)),
  )
  if (changed.some(({ operation }) => lost.has(operation))) return { lost, late: true }
  const counts = new Map<number, Counts>()
  for (const { batch, state, again } of changed) {
    ledger.move(owned.get(batch)?.partner ?? '', 0, state)
    add(counts, batch, -1, again === null ? -1 : 0)
  }
  await supersede(client, context, ledger, counts, changed)
  await writeCounts(client, counts)
  await writeAnswers(client, context, changed, owned)
  return { lost, late: false }
}

function toOutcomes(operation: SettleOperation | undefined, index: number): Outcome[] {
  if (operation === undefined) return []
  const { batch, lease, states, retries, reasons, deadLetters, superseded, answers } = operation
  return operation.positions.map((position, at) => ({
    operation: index,
    batch,
    lease,
    position,
    state: states[at] ?? 2,
    again: retries[at] ?? null,
    reason: reasons[at] ?? null,
    deadLetter: deadLetters[at] ?? 0,
    superseded: superseded[at] ?? 0,
    answer: answers[at],
  }))
}

function add(counts: Map<number, Counts>, batch: number, open: number, live: number): void {
  const before = counts.get(batch) ?? { open: 0, live: 0 }
  counts.set(batch, { open: before.open + open, live: before.live + live })
}

/**
 * Locks the batches that are settled, and those of older records that will be superseded, in the order that all take. Gives the
 * partners of those that this instance owns: whoever takes one over waits until the settle is done, or came before.
 */
async function lockOwned(
  client: PoolClient,
  instance: number,
  outcomes: readonly Outcome[],
): Promise<ReadonlyMap<number, OwnedBatch>> {
  const confirmed = outcomes.filter(({ state }) => state === 1)
  const { rows } = await client.query<OwnedBatch & { id: number; owner: number }>({
    name: 'journal-lock',
    text: `select id, partner, owner_id, owner from journal_batches where id in (
        select unnest($1::bigint[])
        union select o.batch from unnest($2::bigint[], $3::int[]) as u (batch, position)
          join journal_records r on r.batch = u.batch and r.position = u.position
          cross join lateral ${olderClosed('o.batch')} o)
      order by id for no key update`,
    values: [
      [...new Set(outcomes.map(({ batch }) => batch))],
      confirmed.map(({ batch }) => batch),
      confirmed.map(({ position }) => position),
    ],
  })
  return new Map(rows.filter(({ owner }) => owner === instance).map((row) => [row.id, row]))
}

/**
 * SQL for what a confirmed record `r` supersedes, as a subquery: steps into the index of live records that read these rows alone.
 */
const olderClosed = (columns: string): string =>
  `(select ${columns} from (values (1), (2), (3), (4)) as s (state) cross join lateral (
      select ${columns} from journal_records o where o.key = r.key and o.live = 1 and o.state = s.state
        and (o.batch, o.position) < (r.batch, r.position) offset 0) as o)`

const SETTLED = {
  state: 'u.state',
  live: 'case when u.again is null then 0 else 1 end',
  again: 'u.again',
  dead_letter: 'u.dead_letter',
  superseded: 'u.superseded',
}

const SUPERSEDED = {
  state: 'case o.state when 4 then 2 else o.state end',
  live: '0',
  again: 'null',
  superseded: '1',
}

/** Writes what is still open, and gives those outcomes. */
async function writeOutcomes(
  client: PoolClient,
  { nowMs }: WriteContext,
  outcomes: readonly Outcome[],
): Promise<readonly Outcome[]> {
  if (outcomes.length === 0) return []
  const { rows } = await client.query<{ n: number }>({
    name: 'journal-settle',
    text: `update journal_records r set state = u.state, again = u.again, reason = u.reason,
        live = case when u.again is null then 0 else 1 end, dead_letter = u.dead_letter,
        superseded = u.superseded, settled_ms = $8,
        sum = ${changeOfRecord(SETTLED, 'r.')}
      from unnest($1::int[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::text[], $7::int[], $9::int[])
        as u (n, batch, position, state, again, reason, dead_letter, superseded)
      where r.batch = u.batch and r.position = u.position and r.state = 0
      returning u.n`,
    values: [
      outcomes.map((_, index) => index),
      outcomes.map(({ batch }) => batch),
      outcomes.map(({ position }) => position),
      outcomes.map(({ state }) => state),
      outcomes.map(({ again }) => again),
      outcomes.map(({ reason }) => reason),
      outcomes.map(({ deadLetter }) => deadLetter),
      nowMs,
      outcomes.map(({ superseded }) => superseded),
    ],
  })
  return rows
    .map(({ n }) => n)
    .sort((one, other) => one - other)
    .flatMap((n) => outcomes[n] ?? [])
}

/** The same outcome once more, after an answer that got lost, is no error; another one is. */
async function findLost(client: PoolClient, outcomes: readonly Outcome[]): Promise<ReadonlySet<number>> {
  if (outcomes.length === 0) return new Set()
  const { rows } = await client.query<{ n: number }>(
    `select n from unnest($1::int[], $2::bigint[], $3::int[], $4::int[], $5::text[])
       as u (n, batch, position, state, reason)
     where not exists (select 1 from journal_records r where r.batch = u.batch and r.position = u.position
       and r.state = u.state and r.reason is not distinct from u.reason)`,
    [
      outcomes.map(({ operation }) => operation),
      outcomes.map(({ batch }) => batch),
      outcomes.map(({ position }) => position),
      outcomes.map(({ state }) => state),
      outcomes.map(({ reason }) => reason),
    ],
  )
  return new Set(rows.map(({ n }) => n))
}

/** Older records of the keys that were confirmed are never sent again. */
async function supersede(
  client: PoolClient,
  { nowMs }: WriteContext,
  ledger: LedgerChanges,
  counts: Map<number, Counts>,
  changed: readonly Outcome[],
): Promise<void> {
  const confirmed = changed.filter(({ state }) => state === 1)
  if (confirmed.length === 0) return
  const { rows } = await client.query<{ batch: number; partner: string; parked: boolean }>({
    name: 'journal-supersede',
    text: `update journal_records o set live = 0, again = null, superseded = 1, settled_ms = $3,
        sum = ${changeOfRecord(SUPERSEDED, 'o.')},
        state = case o.state when 4 then 2 else o.state end,
        reason = case o.state when 4 then 'superseded' else o.reason end
      from (select distinct l.batch, l.position from unnest($1::bigint[], $2::int[]) as u (batch, position)
        join journal_records r on r.batch = u.batch and r.position = u.position
        cross join lateral ${olderClosed('o.batch, o.position')} l) as u, journal_batches b
      where o.batch = u.batch and o.position = u.position and o.live = 1 and o.state <> 0 and b.id = o.batch
      returning o.batch, b.partner, o.state = 2 and o.reason is not distinct from 'superseded' as parked`,
    values: [confirmed.map(({ batch }) => batch), confirmed.map(({ position }) => position), nowMs],
  })
  for (const { batch, partner, parked } of rows) {
    add(counts, batch, 0, -1)
    if (parked) ledger.move(partner, 4, 2)
  }
}

async function writeCounts(client: PoolClient, counts: ReadonlyMap<number, Counts>): Promise<void> {
  if (counts.size === 0) return
  const { rows } = await client.query<{ id: number; live: number }>({
    name: 'journal-counts',
    text: `update journal_batches b set open = b.open + u.open, live = b.live + u.live,
        sum = ${changeOfBatch({ open: 'b.open + u.open', live: 'b.live + u.live' }, 'b.')}
      from unnest($1::bigint[], $2::int[], $3::int[]) as u (id, open, live)
      where b.id = u.id returning b.id, b.live`,
    values: [
      [...counts.keys()],
      [...counts.values()].map(({ open }) => open),
      [...counts.values()].map(({ live }) => live),
    ],
  })
  const done = rows.filter(({ live }) => live === 0).map(({ id }) => id)
  if (done.length === 0) return
  await client.query({
    name: 'journal-drop-credentials',
    text: 'delete from journal_credentials where batch = any($1::bigint[])',
    values: [done],
  })
}

async function writeAnswers(
  client: PoolClient,
  { key }: WriteContext,
  changed: readonly Outcome[],
  owned: ReadonlyMap<number, OwnedBatch>,
): Promise<void> {
  const byBatch = new Map<number, Outcome[]>()
  for (const outcome of changed) {
    const list = byBatch.get(outcome.batch)
    if (list === undefined) byBatch.set(outcome.batch, [outcome])
    else list.push(outcome)
  }
  const rows: SealedRow[] = []
  for (const [batch, outcomes] of byBatch) {
    const pack = packAnswers(
      outcomes.map(({ position }) => position),
      outcomes.map(({ answer }) => answer),
    )
    const of = { batch, owner: owned.get(batch)?.owner_id ?? '' }
    if (pack !== undefined) rows.push({ batch, ...(await sealAside(pack, key, 'answers', of)) })
  }
  await writeSealed(client, 'answers', rows)
}
