import type { DatabaseSync } from 'node:sqlite'

import type { HighWater } from '../high-water/high-water.ts'
import { judgeArrival, toSameIds } from '../same-ids.ts'
import { type SummedBatch, sumOfBatch } from '../schema/row-sums.ts'
import { packAnswers } from '../store/answer-pack.ts'
import { createKeyHash } from '../store/hash-key.ts'
import { hasPassed, passGate } from '../store/commit-gate.ts'
import { damagedRecord, expectIntactBatch } from '../store/damage.ts'
import { gaveUp } from '../store/store-error.ts'
import { createLedgerChanges, type LedgerChanges } from '../store/ledger-changes.ts'
import {
  type BeginOperation,
  type CommittedBegin,
  forAllOfKey,
  type OperationResult,
  type ReopenOperation,
  type CommittedReopen,
  type Three,
} from '../store/operations.ts'
import { seal, type SealedFor } from '../store/seal.ts'
import type { Committed, Group, StoreSecrets } from '../store/store.ts'
import { toCommitError, toStoreError } from './to-store-error.ts'
import { createSettling } from './settling.ts'
import { type GroupStatements, prepareStatements } from './statements.ts'

/** The columns of `countCommit`. */
interface CommitRow {
  readonly identity: unknown
  readonly commits: unknown
}

/** A batch as its statements read it. */
type BatchRow = SummedBatch & { readonly id: number; readonly sum: number | null }

interface Context {
  readonly on: GroupStatements
  readonly secrets: StoreSecrets
  readonly hashKey: (key: string) => Uint8Array
  readonly replayForMs: number
}

interface GroupContext extends Context {
  readonly isOlderServed: boolean
}

/** What a transaction is checked against. */
export interface Watch {
  /** Checks the files. */
  readonly check: () => void
  readonly highWater: HighWater
}

/** Creates what makes a group durable: one transaction, one fsync. Never throws. */
export function createCommitGroup(
  database: DatabaseSync,
  { check, highWater }: Watch,
  secrets: StoreSecrets,
  replayForMs: number,
): (group: Group) => Committed {
  const on = prepareStatements(database)
  const context = { on, secrets, hashKey: createKeyHash(secrets.salt), replayForMs }
  return (group) => {
    /** Settles that turned out to be lost when some of their rows were written: they are left out of the next try. */
    const lost = new Set<number>()
    try {
      for (;;) {
        check()
        const known = highWater.known()
        database.exec('BEGIN IMMEDIATE')
        const commits = highWater.check(on.countCommit.get() as CommitRow | undefined, known)
        const own = on.instance.get(group.instance)
        if (own === undefined) {
          database.exec('ROLLBACK')
          return { ok: false, error: { kind: 'expired', message: 'another instance has taken over' } }
        }
        const results = runGroup({ ...context, isOlderServed: own['older'] === 1 }, group, lost)
        if (results !== undefined && !passGate(group.gate)) {
          database.exec('ROLLBACK')
          return { ok: false, error: gaveUp }
        }
        if (results !== undefined) {
          database.exec('COMMIT')
          highWater.reached(commits)
          return { ok: true, results }
        }
        database.exec('ROLLBACK')
      }
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      return { ok: false, error: (hasPassed(group.gate) ? toCommitError : toStoreError)(error) }
    }
  }
}

/** Runs the operations in their order; undefined: one was lost halfway and is in `lost` now. */
function runGroup(context: GroupContext, group: Group, lost: Set<number>): OperationResult[] | undefined {
  const { on, secrets } = context
  const ledger = createLedgerChanges()
  const settling = createSettling(on, secrets, ledger, group)
  const results: OperationResult[] = []
  for (const [index, operation] of group.operations.entries()) {
    if (operation.kind === 'settle') {
      const result = lost.has(index) ? 'lost' : settling.settle(operation)
      if (result === 'late') {
        lost.add(index)
        return undefined
      }
      results.push(result)
      continue
    }
    settling.flush()
    if (operation.kind === 'begin') results.push(begin(context, ledger, group, operation))
    else if (operation.kind === 'reopen') results.push(reopen(context, ledger, group.instance, operation))
    else if (operation.kind === 'answered') results.push(noteAnswered(on, operation.batches))
    else if (operation.kind === 'withdraw')
      results.push(withdraw(on, ledger, group.instance, operation.batch))
    else results.push('done')
  }
  settling.flush()
  for (const [partner, changes] of ledger.list()) on.ledger.run(partner, ...changes)
  return results
}

function begin(
  context: GroupContext,
  ledger: LedgerChanges,
  group: Group,
  operation: BeginOperation,
): CommittedBegin {
  const { on, secrets } = context
  const { partner, owner, ids, content, payload, credentials, keys, refused } = operation
  const earlier =
    ids === undefined ? [] : on.sameIds.all(ids, owner).map((row) => toSameIds(row as unknown as BatchRow))
  const { known, idsReused, retired } = judgeArrival(
    content,
    operation.receivedMs,
    { replayForMs: context.replayForMs, forgottenBatch: group.forgottenBatch },
    earlier,
  )
  for (const one of retired) on.retire.run(one)
  if (known !== undefined) return { kind: 'known', batch: known.batch, running: known.running }
  // Times of receipt never run backwards, whatever a clock does: the mark that came later is never the older one.
  const latest = Number(on.latestReceipt.get()?.['received_ms'] ?? 0)
  const receivedMs = Math.max(operation.receivedMs, latest)
  const open = keys.length - refused.positions.length
  const newBatch = { partner, content, owner: group.instance, answered: 0, retired: 0 }
  const { lastInsertRowid } = on.insertBatch.run(
    partner,
    owner,
    ids ?? null,
    content,
    receivedMs,
    group.instance,
    open,
    open,
    sumOfBatch({ ...newBatch, owner_id: owner, ids: ids ?? null, received_ms: receivedMs, open, live: open }),
  )
  const batch = Number(lastInsertRowid)
  const sealed = seal(payload, secrets.key, 'payload', { batch, owner })
  on.insertPayload.run(batch, sealed.keyId, sealed.body)
  if (open > 0) putCredentials(context, { batch, owner }, credentials)
  insertRecords(context, batch, operation, group.nowMs)
  if (context.isOlderServed) for (const statement of on.dropSums) statement.run(batch)
  const pack = packAnswers(refused.positions, refused.answers)
  if (pack !== undefined) {
    const answers = seal(pack, secrets.key, 'answers', { batch, owner })
    on.insertAnswers.run(batch, answers.keyId, answers.body)
  }
  ledger.move(partner, undefined, 0, open)
  ledger.move(partner, undefined, 2, refused.positions.length)
  const after = readOlder(on, batch, keys)
  return { kind: 'new', batch, lease: group.instance, receivedMs, after, idsReused }
}

/** The nearest older open records, in threes. Most batches have none, which costs less to find out. */
function readOlder(on: GroupStatements, batch: number, keys: readonly string[]): readonly number[] {
  if (on.hasOlder.get(batch) === undefined) return []
  // With setReturnArrays each row is an array, which the types do not say.
  return forAllOfKey(keys, on.nearestOlder.all(batch) as unknown as Three[])
}

function noteAnswered(on: GroupStatements, batches: readonly number[]): 'done' {
  on.answered.run(JSON.stringify(batches))
  return 'done'
}

/** All open records between two refused ones go with one statement: a call takes longer than a row. */
function insertRecords(
  { on, hashKey }: Context,
  batch: number,
  { keys, refused }: BeginOperation,
  nowMs: number,
): void {
  const hashes = keys.map(hashKey)
  const all = Buffer.concat(hashes)
  let from = 0
  for (const [index, position] of refused.positions.entries()) {
    if (from < position) on.insertOpen.run(from, position - 1, batch, all, all, batch)
    on.insertRefused.run(batch, position, hashes[position] ?? null, refused.reasons[index] ?? null, nowMs)
    from = position + 1
  }
  if (from < keys.length) on.insertOpen.run(from, keys.length - 1, batch, all, all, batch)
}

/** Credentials are kept only where they can be encrypted. */
function putCredentials({ on, secrets }: Context, of: SealedFor, credentials: string | undefined): void {
  if (secrets.key === undefined || credentials === undefined) return
  const { keyId, body } = seal(Buffer.from(credentials), secrets.key, 'credentials', of)
  on.putCredentials.run(of.batch, keyId, body)
}

function reopen(
  context: Context,
  ledger: LedgerChanges,
  instance: number,
  { batch, positions, credentials, evenDamaged }: ReopenOperation,
): CommittedReopen {
  const { on } = context
  const row = on.batch.get(batch)
  if (row === undefined || (Number(row['open']) > 0 && row['owner'] !== instance)) {
    return { lease: instance, opened: [], after: [] }
  }
  const records = recordsOf(on, batch)
  if (!evenDamaged) {
    expectIntactBatch(batch, row as unknown as BatchRow)
    if (records.some(({ isIntact }) => !isIntact)) throw damagedRecord(batch)
  }
  const wanted = new Set(positions)
  const opened: number[] = []
  const after: number[] = []
  const places = new Map<string, KeyPlaces>()
  for (const { position, state, isLive, key } of records) {
    if (state === 0 || !isLive || !wanted.has(position)) continue
    const name = key.toString('latin1')
    let place = places.get(name)
    if (place === undefined) {
      place = findPlaces(on, key, batch, position)
      places.set(name, place)
    }
    if (position < place.from) continue
    on.reopen.run(batch, position)
    opened.push(position)
    ledger.move(String(row['partner']), state, 0)
    if (place.older !== undefined) after.push(position, ...place.older)
  }
  if (opened.length === 0) return { lease: instance, opened, after }
  on.own.run(instance, instance, batch)
  on.count.get(opened.length, 0, opened.length, 0, batch)
  putCredentials(context, { batch, owner: String(row['owner_id']) }, credentials)
  return { lease: instance, opened, after }
}

interface RecordRow {
  readonly position: number
  readonly state: number
  readonly isLive: boolean
  readonly key: Buffer
  readonly isIntact: boolean
}

/** The records of a batch, oldest first. */
function recordsOf(on: GroupStatements, batch: number): readonly RecordRow[] {
  const rows = on.recordsOf.all(batch) as unknown as [number, number, number, unknown, number][]
  return rows.map(([position, state, live, key, intact]) => ({
    position,
    state,
    isLive: live === 1,
    // A damaged column of SQLite may hold another type than its own.
    key: Buffer.from(key instanceof Uint8Array ? key : []),
    isIntact: intact === 1,
  }))
}

/** What decides for all records of one key in a batch that are to be opened again. */
interface KeyPlaces {
  /** The first position that has no newer record which is open or may have been applied. */
  readonly from: number
  /** Batch and position of the nearest older open record; those that are opened together are none. */
  readonly older: Two | undefined
}

type Two = readonly [batch: number, position: number]

/** Asks once for each key; `first` is the oldest of its records that are to be opened. */
function findPlaces(on: GroupStatements, key: Uint8Array, batch: number, first: number): KeyPlaces {
  const [standingBatch, standing] = (on.newestStanding.get({ key }) as unknown as Two | undefined) ?? [0, 0]
  if (standingBatch > batch) return { from: Infinity, older: undefined }
  const from = standingBatch === batch ? standing : 0
  // One of this batch that is open is older than all that are opened.
  const upTo = standingBatch === batch ? Math.max(first, standing + 1) : first
  const older = on.nearestOlderOf.get(key, batch, upTo) as unknown as Two | undefined
  return { from, older }
}

function withdraw(on: GroupStatements, ledger: LedgerChanges, instance: number, batch: number): 'done' {
  const row = on.batch.get(batch)
  // Taken over meanwhile: it is finished there.
  if (row === undefined || row['owner'] !== instance) return 'done'
  for (const { state } of recordsOf(on, batch)) {
    ledger.remove(String(row['partner']), state, 1)
  }
  for (const statement of on.withdraw) statement.run(batch)
  return 'done'
}
