import type { DatabaseSync } from 'node:sqlite'

import { makeChanges, type ReadRun, type Run, runsOf, standingFor } from '../core/run.ts'
import { hasPassed, passGate } from '../store/commit-gate.ts'
import { createKeyHash } from '../store/hash-key.ts'
import { createLedgerChanges } from '../store/ledger-changes.ts'
import type { Committed, Group, StoreSecrets } from '../store/store.ts'
import { expired, gaveUp } from '../store/store-error.ts'
import { readBatch, readBegin, readSettle } from './read-rows.ts'
import { type GroupStatements, prepareStatements } from './statements.ts'
import { toCommitError, toStoreError } from './to-store-error.ts'
import { beginCounted, type Watch } from './transaction.ts'
import { createRowWriter } from './write-rows.ts'

/** Creates what makes a group durable: one transaction, one fsync. Never throws. */
export function createCommitGroup(
  database: DatabaseSync,
  watch: Watch,
  { salt, key }: StoreSecrets,
  replayForMs: number,
): (group: Group) => Committed {
  const on = prepareStatements(database)
  const hashKeys = createKeyHash(salt)
  const commitGroup = (group: Group): Committed => {
    const { instance, nowMs, forgottenBatch, operations, gate } = group
    const commits = beginCounted(database, on, watch)
    const own = on.instance.get(instance)
    if (own === undefined) {
      database.exec('ROLLBACK')
      return { ok: false, error: expired }
    }
    const ledger = createLedgerChanges()
    const write = createRowWriter({ on, key, hashKeys, nowMs })
    const context = { instance, nowMs, replayForMs, forgottenBatch, hasKey: key !== undefined, ledger, write }
    const later = runsOf(operations).flatMap((run) => makeChanges(context, read(on, run, own['older'] === 1)))
    for (const [partner, changes] of ledger.list()) on.ledger.run(partner, ...changes)
    const results = later.map((result) => result())
    if (!passGate(gate)) {
      database.exec('ROLLBACK')
      return { ok: false, error: gaveUp }
    }
    database.exec('COMMIT')
    watch.highWater.reached(commits)
    return { ok: true, results }
  }
  return (group) => {
    try {
      return commitGroup(group)
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      return { ok: false, error: (hasPassed(group.gate) ? toCommitError : toStoreError)(error) }
    }
  }
}

function read(on: GroupStatements, run: Run, isOlderServed: boolean): ReadRun {
  switch (run.kind) {
    case 'begin':
      return { ...run, rows: readBegin(on, run.operations, isOlderServed) }
    case 'settle':
      return { ...run, rows: readSettle(on, run.operations) }
    case 'batch':
      return { ...run, rows: readBatch(on, run.operation.batch, standingFor(run.operation)) }
    case 'note':
      return run
  }
}
