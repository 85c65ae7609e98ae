import { randomUUID } from 'node:crypto'

import type { Pool, PoolClient, QueryResult } from 'pg'

import type { HighWater } from '../high-water/high-water.ts'
import { commitMarkerOf } from '../schema/commit-markers.ts'
import { passGate } from '../store/commit-gate.ts'
import { gaveUp } from '../store/store-error.ts'
import { createKeyHash } from '../store/hash-key.ts'
import { createLedgerChanges, type LedgerChanges } from '../store/ledger-changes.ts'
import type { BeginOperation, Operation, OperationResult, SettleOperation } from '../store/operations.ts'
import type { Committed, Group, StoreSecrets } from '../store/store.ts'
import { beginBatches, noteAnswered } from './begin.ts'
import type { WriteContext } from './context.ts'
import { writeLedger } from './ledger.ts'
import { toStoreError } from './to-store-error.ts'
import { reopenRecords, withdrawBatch } from './reopen.ts'
import { settleRecords } from './settle.ts'

/** The lock under which all instances begin and reopen: their order is the order of batch numbers and of commits. */
export const ORDER_LOCK = 7_238_519_461

/** Groups of settles that may run at the same time. */
export const SETTLE_CONCURRENCY = 3

const EXPIRED: Committed = {
  ok: false,
  error: { kind: 'expired', message: 'another instance has taken over' },
}
const ROLLED_BACK: Committed = {
  ok: false,
  error: { kind: 'transient', message: 'the database rolled back' },
}

/** Creates what makes a group durable in PostgreSQL: one transaction. Never rejects. */
export function createCommitGroups(
  pool: Pool,
  highWater: HighWater,
  secrets: StoreSecrets,
  replayForMs: number,
): (group: Group) => Promise<Committed> {
  const hashKey = createKeyHash(secrets.salt)
  const freeSlots = Array.from({ length: SETTLE_CONCURRENCY }, (_, index) => index + 1)
  /** The ordered group whose commit was not answered: the mark that it left, or did not, tells what became of it. */
  let doubt:
    { readonly mark: CommitMarker; readonly results: ReadonlyMap<Operation, OperationResult> } | undefined
  /** Results of operations that turned out to be durable. */
  const resolved = new Map<Operation, OperationResult>()

  const contextOf = ({ instance, nowMs, forgottenBatch }: Group): WriteContext => ({
    instance,
    nowMs,
    forgottenBatch,
    key: secrets.key,
    hashKey,
    replayForMs,
  })
  const commitOrdered = async (client: PoolClient, group: Group): Promise<Committed> => {
    const commits = await beginCounted(client, highWater, slotOf(group.instance, 0))
    await client.query('select pg_advisory_xact_lock($1)', [ORDER_LOCK])
    if (doubt !== undefined) {
      if (await isThere(client, doubt.mark)) for (const one of doubt.results) resolved.set(...one)
      doubt = undefined
    }
    if (!(await isRegistered(client, group.instance))) {
      await client.query('rollback')
      return EXPIRED
    }
    const context = contextOf(group)
    const ledger = createLedgerChanges()
    const results = new Map<Operation, OperationResult>()
    for (const run of runsOf(group.operations.filter((operation) => !resolved.has(operation)))) {
      await runOrdered(client, context, ledger, run, results)
    }
    await writeLedger(client, ledger, slotOf(group.instance, 0))
    const mark = await writeCommitMarker(client, group.instance)
    if (!passGate(group.gate)) return giveUp(client)
    try {
      if (!(await commit(client))) return ROLLED_BACK
      highWater.reached(commits)
    } catch (cause) {
      doubt = { mark, results }
      return { ok: false, error: { ...toStoreError(cause), kind: 'doubtful' } }
    }
    const all = group.operations.map((one) => results.get(one) ?? resolved.get(one) ?? 'lost')
    for (const operation of group.operations) resolved.delete(operation)
    return { ok: true, results: all }
  }
  const commitSettles = async (client: PoolClient, group: Group, slot: number): Promise<Committed> => {
    const context = contextOf(group)
    const settles = group.operations.map((one) => (one.kind === 'settle' ? one : undefined))
    const allLost = new Set<number>()
    for (;;) {
      const commits = await beginCounted(client, highWater, slotOf(group.instance, slot))
      const ledger = createLedgerChanges()
      const { lost, late } = await settleRecords(
        client,
        context,
        ledger,
        settles.map((one, index): SettleOperation | undefined => (allLost.has(index) ? undefined : one)),
      )
      for (const index of lost) allLost.add(index)
      if (late) {
        await client.query('rollback')
        continue
      }
      await writeLedger(client, ledger, slotOf(group.instance, slot))
      if (!passGate(group.gate)) return giveUp(client)
      // Settles are made again where the answer of the commit is lost: the same outcome twice changes nothing.
      if (!(await commit(client))) return ROLLED_BACK
      highWater.reached(commits)
      return { ok: true, results: settles.map((_, index) => (allLost.has(index) ? 'lost' : 'done')) }
    }
  }
  return (group) =>
    withClient(pool, async (client) => {
      if (group.operations[0]?.kind !== 'settle') return commitOrdered(client, group)
      const slot = freeSlots.shift() ?? 1
      try {
        return await commitSettles(client, group, slot)
      } finally {
        freeSlots.push(slot)
      }
    })
}

async function giveUp(client: PoolClient): Promise<Committed> {
  await client.query('rollback')
  return { ok: false, error: gaveUp }
}

/** Runs work on a connection, which is not used again after an error. */
async function withClient(pool: Pool, work: (client: PoolClient) => Promise<Committed>): Promise<Committed> {
  let client: PoolClient | undefined
  try {
    client = await pool.connect()
    const committed = await work(client)
    client.release(!committed.ok && committed.error.kind !== 'expired')
    return committed
  } catch (error) {
    // Closing it rolls back.
    client?.release(true)
    return { ok: false, error: toStoreError(error) }
  }
}

/** Begins a transaction that counts itself. One round trip: the statements go as one text, whose numbers are our own. */
async function beginCounted(client: PoolClient, highWater: HighWater, slot: number): Promise<number> {
  const known = highWater.known()
  const results: unknown = await client.query(
    `begin;
    insert into journal_commits as c (slot, commits) values (${slot}, 1)
      on conflict (slot) do update set commits = c.commits + 1;
    select (select value from journal_meta where name = 'identity') as identity,
      (select sum(commits)::bigint from journal_commits) as commits`,
  )
  // pg gives one result for each statement of a text, which its types do not say.
  const found = Array.isArray(results) ? (results as QueryResult<CommitRow>[]).at(-1)?.rows[0] : undefined
  return highWater.check(found, known)
}

/** What `beginCounted` reads. */
interface CommitRow {
  readonly identity: string | null
  readonly commits: number | null
}

/** True when it is durable: PostgreSQL answers COMMIT with ROLLBACK where an error came before. */
async function commit(client: PoolClient): Promise<boolean> {
  const { command } = await client.query('commit')
  return command === 'COMMIT'
}

async function isRegistered(client: PoolClient, instance: number): Promise<boolean> {
  // Whoever takes this instance for dead deletes the row, and so waits for the end of this transaction.
  const { rows } = await client.query('select 1 from journal_instances where id = $1 for key share', [
    instance,
  ])
  return rows.length > 0
}

/**
 * What a group leaves behind in the row of its instance. The number of a transaction would not do: a server that dies gives the
 * numbers that never reached its disk to others.
 */
interface CommitMarker {
  readonly name: string
  readonly value: string
}

async function writeCommitMarker(client: PoolClient, instance: number): Promise<CommitMarker> {
  const mark = { name: commitMarkerOf(instance), value: randomUUID() }
  await client.query({
    name: 'journal-mark',
    text: `insert into journal_meta (name, value) values ($1, $2)
      on conflict (name) do update set value = excluded.value`,
    values: [mark.name, mark.value],
  })
  return mark
}

/** The lock is held, so that the transaction has ended one way or the other. */
async function isThere(client: PoolClient, { name, value }: CommitMarker): Promise<boolean> {
  const { rows } = await client.query('select 1 from journal_meta where name = $1 and value = $2', [
    name,
    value,
  ])
  return rows.length > 0
}

/** Begins that follow each other are written together. */
function runsOf(operations: readonly Operation[]): readonly (readonly Operation[])[] {
  const runs: Operation[][] = []
  for (const operation of operations) {
    const last = runs.at(-1)
    if (last?.[0]?.kind === 'begin' && operation.kind === 'begin') last.push(operation)
    else runs.push([operation])
  }
  return runs
}

async function runOrdered(
  client: PoolClient,
  context: WriteContext,
  ledger: LedgerChanges,
  run: readonly Operation[],
  results: Map<Operation, OperationResult>,
): Promise<void> {
  const begins = run.filter((one): one is BeginOperation => one.kind === 'begin')
  if (begins.length > 0) {
    const begun = await beginBatches(client, context, ledger, begins)
    begins.forEach((operation, index) => results.set(operation, begun[index] ?? 'lost'))
    return
  }
  for (const operation of run) {
    if (operation.kind === 'reopen') {
      results.set(operation, await reopenRecords(client, context, ledger, operation))
    } else if (operation.kind === 'answered') {
      await noteAnswered(client, operation.batches)
      results.set(operation, 'done')
    } else if (operation.kind === 'withdraw') {
      results.set(operation, await withdrawBatch(client, context, ledger, operation.batch))
    } else if (operation.kind === 'probe') {
      results.set(operation, 'done')
    }
  }
}

/** Rows of the ledger: one for each writer, as far as there are not too many instances. */
const slotOf = (instance: number, lane: number): number => (instance % 8) * (SETTLE_CONCURRENCY + 1) + lane
