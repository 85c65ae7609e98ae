import type { Pool, PoolClient } from 'pg'

import { settle } from '../core/settle.ts'
import type { ChangeContext, Later } from '../core/rows.ts'
import { makeChanges, type ReadRun, type Run, runsOf, standingFor } from '../core/run.ts'
import { stateCodes } from '../lifecycle.ts'
import type { HighWater } from '../high-water/high-water.ts'
import { passGate } from '../store/commit-gate.ts'
import { createKeyHash } from '../store/hash-key.ts'
import { createLedgerChanges } from '../store/ledger-changes.ts'
import type { Operation, OperationResult } from '../store/operations.ts'
import type { Committed, Group, StoreSecrets } from '../store/store.ts'
import { expired, gaveUp, type StoreError } from '../store/store-error.ts'
import { readBatch, readBegin, readSettle } from './read-rows.ts'
import { createStatementQueue, type StatementQueue } from './statement-queue.ts'
import { toStoreError } from './to-store-error.ts'
import {
  addCommitMarker,
  beginCounted,
  type CommitMarker,
  isMarked,
  lockOrder,
  slotOf,
} from './transaction.ts'
import { createRowWriter, type QueuedWriter } from './write-rows.ts'

const rolledBack: StoreError = { kind: 'transient', message: 'the database rolled back' }

/** Creates what makes a group durable in PostgreSQL: one transaction. Never rejects. */
export function createCommitGroups(
  pool: Pool,
  highWater: HighWater,
  { salt, key }: StoreSecrets,
  replayForMs: number,
): (group: Group) => Promise<Committed> {
  const hashKeys = createKeyHash(salt)
  /** The ordered group whose commit was not answered. */
  let doubt:
    { readonly marker: CommitMarker; readonly results: ReadonlyMap<Operation, OperationResult> } | undefined
  /** Results of operations that turned out to be durable. */
  const resolved = new Map<Operation, OperationResult>()

  const contextOf = (
    queue: StatementQueue,
    group: Group,
  ): ChangeContext & { readonly write: QueuedWriter } => {
    const { instance, nowMs, forgottenBatch } = group
    const write = createRowWriter({ queue, key, hashKeys, nowMs })
    return {
      instance,
      nowMs,
      replayForMs,
      forgottenBatch,
      hasKey: key !== undefined,
      ledger: createLedgerChanges(),
      write,
    }
  }
  const commitOrdered = async (client: PoolClient, group: Group): Promise<Committed> => {
    const queue = createStatementQueue(client)
    const slot = slotOf(group.instance, 'ordered')
    const context = contextOf(queue, group)
    const known = highWater.known()
    const counted = beginCounted(queue, slot)
    const own = lockOrder(queue, group.instance)
    if (doubt !== undefined) {
      await queue.send()
      if (await isMarked(client, doubt.marker)) for (const one of doubt.results) resolved.set(...one)
      doubt = undefined
    }
    const operations = group.operations.filter((operation) => !resolved.has(operation))
    const later: Later<OperationResult>[] = []
    for (const run of runsOf(operations)) {
      const readRun = queueReads(queue, run, () => own()?.older === true)
      // A note reads nothing; the others find what the runs before them wrote.
      if (run.kind !== 'note') {
        await queue.send()
        highWater.check(counted(), known, slot)
        if (own() === undefined) return giveUp(client, expired)
      }
      later.push(...makeChanges(context, readRun()))
      context.write.flush()
    }
    context.write.addToLedger(context.ledger, slot)
    const marker = addCommitMarker(queue, group.instance)
    await queue.send()
    const commits = highWater.check(counted(), known, slot)
    if (own() === undefined) return giveUp(client, expired)
    const results = new Map(operations.map((operation, index) => [operation, later[index]?.() ?? 'lost']))
    if (!passGate(group.gate)) return giveUp(client, gaveUp)
    try {
      // PostgreSQL answers COMMIT with ROLLBACK where an error came before.
      const { command } = await client.query('commit')
      if (command !== 'COMMIT') return { ok: false, error: rolledBack }
      highWater.reached(commits)
    } catch (cause) {
      doubt = { marker, results }
      return { ok: false, error: { ...toStoreError(cause), kind: 'doubtful' } }
    }
    const all = group.operations.map((one) => results.get(one) ?? resolved.get(one) ?? 'lost')
    for (const operation of group.operations) resolved.delete(operation)
    return { ok: true, results: all }
  }
  const commitSettles = async (client: PoolClient, group: Group): Promise<Committed> => {
    const all = group.operations.flatMap((one) => (one.kind === 'settle' ? [one] : []))
    let settles = all
    const slot = slotOf(group.instance, 'settles')
    const further = new Set<number>()
    for (;;) {
      const queue = createStatementQueue(client)
      const context = contextOf(queue, group)
      const known = highWater.known()
      const counted = beginCounted(queue, slot)
      const read = readSettle(queue, settles, [...further])
      await queue.send()
      const commits = highWater.check(counted(), known, slot)
      const rows = read()
      // Batches of superseded records are locked with the others, in the order that all take: the transaction begins again. An
      // open record is superseded only where it is settled here, and its batch is locked then.
      const unlocked = (rows.older(settles) ?? []).filter(
        ({ batch, state }) => state !== stateCodes.open && !rows.batches.has(batch) && !further.has(batch),
      )
      const retired = [...rows.batches.values()].flatMap(({ retires }) => retires ?? [])
      const missing = [...unlocked.map(({ batch }) => batch), ...retired.filter((one) => !further.has(one))]
      if (missing.length > 0) {
        for (const batch of missing) further.add(batch)
        await client.query('rollback')
        continue
      }
      const results = settle(context, settles, rows)
      if (results.includes('again')) {
        settles = settles.filter((_, index) => results[index] === 'again')
        await client.query('rollback')
        continue
      }
      context.write.flush()
      context.write.addToLedger(context.ledger, slot)
      if (!passGate(group.gate)) return giveUp(client, gaveUp)
      // Settles are made again where the answer is lost: the same outcome twice changes nothing.
      queue.addText('commit')
      if ((await queue.send()) !== 'COMMIT') return { ok: false, error: rolledBack }
      highWater.reached(commits)
      const made = new Map(settles.map((one, index) => [one, results[index]]))
      return { ok: true, results: all.map((one) => (made.get(one) === 'done' ? 'done' : 'lost')) }
    }
  }
  return (group) =>
    withClient(pool, (client) =>
      group.operations[0]?.kind === 'settle' ? commitSettles(client, group) : commitOrdered(client, group),
    )
}

function queueReads(queue: StatementQueue, run: Run, isOlderServed: () => boolean): Later<ReadRun> {
  switch (run.kind) {
    case 'begin': {
      const read = readBegin(queue, run.operations)
      return () => ({ ...run, rows: { ...read(), isOlderServed: isOlderServed() } })
    }
    case 'settle': {
      const read = readSettle(queue, run.operations, [])
      return () => ({ ...run, rows: read() })
    }
    case 'batch': {
      const { operation } = run
      const wanted = operation.kind === 'reopen' ? operation.positions : []
      const read = readBatch(queue, operation.batch, wanted, standingFor(operation))
      return () => ({ ...run, rows: read() })
    }
    case 'note':
      return () => run
  }
}

async function giveUp(client: PoolClient, error: StoreError): Promise<Committed> {
  await client.query('rollback')
  return { ok: false, error }
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
