import type { PoolClient } from 'pg'

import { judgeArrival, MAX_SAME_IDS, type SameIds, toSameIds } from '../same-ids.ts'
import {
  changeOfBatch,
  DROP_SUMS,
  OLDER_VERSION,
  sumOfBatch,
  sumOfRecord,
  type SummedBatch,
  summedBatchColumns,
} from '../schema/row-sums.ts'
import { packAnswers } from '../store/answer-pack.ts'
import type { LedgerChanges } from '../store/ledger-changes.ts'
import { type BeginOperation, type CommittedBegin, forAllOfKey, type Three } from '../store/operations.ts'
import { seal, sealAside } from '../store/seal.ts'
import type { WriteContext } from './context.ts'
import { newestOf } from './newest-of.ts'
import { type SealedRow, toBuffer, writeSealed } from './sealed-rows.ts'

/** A batch of the group that is new. */
interface Fresh {
  readonly batch: number
  readonly operation: BeginOperation
  readonly receivedMs: number
  readonly open: number
}

/** Begins batches in their order. The caller holds the lock under which all begin. */
export async function beginBatches(
  client: PoolClient,
  context: WriteContext,
  ledger: LedgerChanges,
  operations: readonly BeginOperation[],
): Promise<readonly CommittedBegin[]> {
  const before = await readBefore(client, operations)
  const { numbers, latestMs, isOlderServed } = await takeNumbers(client, operations.length)
  // Times of receipt never run backwards, whatever a clock does: the mark that came later is never the older one.
  let receiptMs = latestMs
  const fresh: Fresh[] = []
  const retiring: number[] = []
  const found = operations.map((operation, index) => {
    const { owner, ids, content, receivedMs, keys, refused } = operation
    const name = ids === undefined ? undefined : nameOf(owner, ids)
    const earlier = (name === undefined ? undefined : before.get(name)) ?? []
    const { known, idsReused, retired } = judgeArrival(content, receivedMs, context, earlier)
    retiring.push(...retired)
    const left = earlier.filter(({ batch }) => !retired.includes(batch))
    if (name !== undefined) before.set(name, left)
    if (known !== undefined) return { kind: 'known', batch: known.batch, running: known.running } as const
    const batch = numbers[index] ?? 0
    const open = keys.length - refused.positions.length
    receiptMs = Math.max(receiptMs, receivedMs)
    fresh.push({ batch, operation, receivedMs: receiptMs, open })
    if (name !== undefined)
      before.set(name, [
        { batch, content, receivedMs: receiptMs, running: open > 0, answered: false },
        ...left,
      ])
    return { kind: 'new', batch, lease: context.instance, receivedMs: receiptMs, idsReused } as const
  })
  await retireBatches(client, retiring)
  if (fresh.length > 0) await writeBatches(client, context, ledger, fresh)
  if (isOlderServed) await dropSums(client, fresh)
  const after = await readOlderOpen(client, fresh)
  return found.map((one) => (one.kind === 'known' ? one : { ...one, after: after.get(one.batch) ?? [] }))
}

const nameOf = (owner: string, ids: Uint8Array): string => `${toBuffer(ids).toString('hex')} ${owner}`

/** The batches of each name that are not retired, the newest first. */
async function readBefore(
  client: PoolClient,
  operations: readonly BeginOperation[],
): Promise<Map<string, readonly SameIds[]>> {
  const ids = operations.flatMap((one) => (one.ids === undefined ? [] : [toBuffer(one.ids)]))
  if (ids.length === 0) return new Map()
  const names = new Set(operations.map((one) => (one.ids === undefined ? '' : nameOf(one.owner, one.ids))))
  const { rows } = await client.query<
    SummedBatch & { readonly id: number; readonly ids: Buffer; readonly sum: number | null }
  >({
    name: 'journal-before',
    text: `select b.id, b.sum, ${summedBatchColumns.map((column) => `b.${column}`).join()}
      from (select distinct unnest($1::bytea[]) as ids) as u
      cross join lateral (select * from journal_batches where ids = u.ids and retired = 0
        order by id desc limit ${MAX_SAME_IDS}) as b
      order by b.id desc`,
    values: [ids],
  })
  const before = new Map<string, SameIds[]>()
  for (const row of rows) {
    const name = nameOf(row.owner_id, row.ids)
    if (!names.has(name)) continue
    const one = toSameIds(row)
    const list = before.get(name)
    if (list === undefined) before.set(name, [one])
    else list.push(one)
  }
  return before
}

async function retireBatches(client: PoolClient, batches: readonly number[]): Promise<void> {
  if (batches.length === 0) return
  await client.query(
    `update journal_batches set retired = 1, sum = ${changeOfBatch({ retired: '1' })} where id = any($1::bigint[])`,
    [batches],
  )
}

/** Notes that the replies of these batches were written out whole. */
export async function noteAnswered(client: PoolClient, batches: readonly number[]): Promise<void> {
  await client.query({
    name: 'journal-answered',
    text: `update journal_batches set answered = 1, sum = ${changeOfBatch({ answered: '1' })}
      where id = any($1::bigint[]) and answered = 0`,
    values: [batches],
  })
}

/** Numbers in the order of the lock: they are taken before the rows are written, since encryption binds them. */
async function takeNumbers(
  client: PoolClient,
  count: number,
): Promise<{
  readonly numbers: readonly number[]
  readonly latestMs: number
  readonly isOlderServed: boolean
}> {
  const { rows } = await client.query<{ id: number; latest: number | null; older: boolean }>({
    name: 'journal-numbers',
    text: `select nextval(pg_get_serial_sequence('journal_batches', 'id')) as id,
        (select received_ms from journal_batches order by id desc limit 1) as latest, ${OLDER_VERSION} as older
      from generate_series(1, $1::int)`,
    values: [count],
  })
  const numbers = rows.map(({ id }) => id).sort((one, other) => one - other)
  return { numbers, latestMs: rows[0]?.latest ?? 0, isOlderServed: rows[0]?.older === true }
}

function toRow({ operation, receivedMs, open }: Fresh, owner: number): SummedBatch {
  const { partner, ids = null, content } = operation
  const fixed = { partner, owner_id: operation.owner, ids, content, received_ms: receivedMs }
  return { ...fixed, owner, open, live: open, answered: 0, retired: 0 }
}

async function writeBatches(
  client: PoolClient,
  context: WriteContext,
  ledger: LedgerChanges,
  fresh: readonly Fresh[],
): Promise<void> {
  const { instance, key } = context
  await client.query({
    name: 'journal-begin',
    text: `insert into journal_batches (id, partner, owner_id, ids, content, received_ms, owner, open, live, sum)
      overriding system value
      select id, partner, owner_id, ids, content, received_ms, $1, open, open, sum
      from unnest($2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::bytea[], $7::bigint[], $8::int[], $9::bigint[])
        as n (id, partner, owner_id, ids, content, received_ms, open, sum)`,
    values: [
      instance,
      fresh.map(({ batch }) => batch),
      fresh.map(({ operation }) => operation.partner),
      fresh.map(({ operation }) => operation.owner),
      fresh.map(({ operation: { ids } }) => (ids === undefined ? null : toBuffer(ids))),
      fresh.map(({ operation }) => toBuffer(operation.content)),
      fresh.map(({ receivedMs }) => receivedMs),
      fresh.map(({ open }) => open),
      fresh.map((one) => sumOfBatch(toRow(one, instance))),
    ],
  })
  const payloads: SealedRow[] = []
  const credentials: SealedRow[] = []
  const answers: SealedRow[] = []
  for (const { batch, operation, open } of fresh) {
    const { partner, refused } = operation
    const of = { batch, owner: operation.owner }
    payloads.push({ batch, ...(await sealAside(operation.payload, key, 'payload', of)) })
    if (key !== undefined && operation.credentials !== undefined && open > 0) {
      credentials.push({ batch, ...seal(Buffer.from(operation.credentials), key, 'credentials', of) })
    }
    const pack = packAnswers(refused.positions, refused.answers)
    if (pack !== undefined) answers.push({ batch, ...(await sealAside(pack, key, 'answers', of)) })
    ledger.move(partner, undefined, 0, open)
    ledger.move(partner, undefined, 2, refused.positions.length)
  }
  await writeSealed(client, 'payload', payloads)
  await writeSealed(client, 'credentials', credentials)
  await writeSealed(client, 'answers', answers)
  await writeRecords(client, context, fresh)
}

/** While an older version is served, which does not know of sums. */
async function dropSums(client: PoolClient, fresh: readonly Fresh[]): Promise<void> {
  const batches = fresh.map(({ batch }) => batch)
  for (const text of DROP_SUMS) await client.query(`${text} = any($1::bigint[])`, [batches])
}

const INSERTED_SUM = sumOfRecord({
  batch: 'batch',
  position: 'position',
  state: 'state',
  live: 'case state when 0 then 1 else 0 end',
  again: 'null',
  attempts: '1',
  superseded: '0',
  dead_letter: '0',
})

/** Records whose keys are hashed, and that are written, in one turn of the event loop. */
const RECORDS_PER_STATEMENT = 2_000

async function writeRecords(
  client: PoolClient,
  context: WriteContext,
  fresh: readonly Fresh[],
): Promise<void> {
  const { hashKey } = context
  let rows = noRows()
  for (const { batch, operation } of fresh) {
    const { positions: refused, reasons: why } = operation.refused
    const reasonOf = new Map(refused.map((position, index) => [position, why[index] ?? null]))
    for (const [position, key] of operation.keys.entries()) {
      rows.batches.push(batch)
      rows.positions.push(position)
      rows.keys.push(toBuffer(hashKey(key)))
      rows.states.push(reasonOf.has(position) ? 2 : 0)
      rows.reasons.push(reasonOf.get(position) ?? null)
      if (rows.keys.length < RECORDS_PER_STATEMENT) continue
      await insertRecords(client, context, rows)
      rows = noRows()
    }
  }
  if (rows.keys.length > 0) await insertRecords(client, context, rows)
}

/** Rows of records by column. */
interface RecordRows {
  readonly batches: number[]
  readonly positions: number[]
  readonly keys: Buffer[]
  readonly states: number[]
  readonly reasons: (string | null)[]
}

const noRows = (): RecordRows => ({ batches: [], positions: [], keys: [], states: [], reasons: [] })

async function insertRecords(
  client: PoolClient,
  { nowMs }: WriteContext,
  { batches, positions, keys, states, reasons }: RecordRows,
): Promise<void> {
  await client.query({
    name: 'journal-records',
    text: `insert into journal_records (batch, position, key, key_copy, state, live, sum, reason, settled_ms)
      select batch, position, key, key, state, case state when 0 then 1 else 0 end, ${INSERTED_SUM}, reason,
        case state when 0 then null else $6::bigint end
      from unnest($1::bigint[], $2::int[], $3::bytea[], $4::int[], $5::text[])
        as n (batch, position, key, state, reason)`,
    values: [batches, positions, keys, states, reasons, nowMs],
  })
}

/** By batch: position, batch and position of the nearest older open record, in threes. */
async function readOlderOpen(
  client: PoolClient,
  fresh: readonly Fresh[],
): Promise<ReadonlyMap<number, readonly number[]>> {
  const after = new Map<number, readonly number[]>()
  if (fresh.length === 0) return after
  const { rows } = await client.query<{
    batch: number
    position: number
    older: number
    older_position: number
  }>({
    name: 'journal-older',
    text: `select f.batch, f.position, o.batch as older, o.position as older_position
      from (select batch, key, min(position) as position from journal_records
        where batch = any($1::bigint[]) and state = 0 group by batch, key) f
      cross join lateral ${newestOf('f.key', 0, 'n.batch < f.batch')} o`,
    values: [fresh.map(({ batch }) => batch)],
  })
  const found = new Map<number, Three[]>()
  for (const row of rows) {
    const threes = found.get(row.batch) ?? []
    threes.push([row.position, row.older, row.older_position])
    found.set(row.batch, threes)
  }
  for (const { batch: number, operation } of fresh)
    after.set(number, forAllOfKey(operation.keys, found.get(number) ?? []))
  return after
}
