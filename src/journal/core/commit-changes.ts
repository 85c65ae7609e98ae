import { setImmediate as nextTurn } from 'node:timers/promises'

import type { Operation, OperationOf, OperationResult } from '../group-commit.ts'
import { type HighWater, slotOf } from '../high-water.ts'
import type { BeginResult, RecordRef } from '../journal.ts'
import { supersededCodes, toStateColumns } from '../lifecycle.ts'
import { createKeyHash, type HashKeys, seal } from '../seal.ts'
import type { RunStatement, StatementName, StatementValues } from '../sql.ts'
import type { Group, StoreSecrets } from '../store.ts'
import { expired, type StoreError } from '../store-error.ts'
import { begin, type Beginning, type SameIds, toHex } from './begin.ts'
import {
  type BatchRow,
  type BatchRows,
  type ByKey,
  type ChangeContext,
  type Changes,
  move,
  noChanges,
  type RecordRow,
} from './rows.ts'
import {
  chooseReopened,
  firstOfKeys,
  forget,
  reasonOfSuperseded,
  reopen,
  settle,
  type SettledRecord,
  type SettleRows,
  type Superseding,
} from './settle.ts'

type Changed =
  | { readonly ok: true; readonly results: readonly OperationResult[]; readonly commits: number }
  | { readonly ok: false; readonly error: StoreError }

/** Maximum number of records that are hashed or written in one turn of the event loop. */
const RECORDS_PER_TURN = 2_000

const json = (list: readonly (number | string)[]): string => JSON.stringify(list)

interface OpeningRow {
  readonly commits: number
  /** The number of commits in the slot in which this process made its last commit. */
  readonly before: number | null
  readonly beforeMarker: string | null
  /** The highest batch number, including the numbers reserved for this group. */
  readonly lastBatch: number
  /**
   * Null if other instances declared this instance dead, or if an older copy of the database assigned the number of this instance to
   * another process.
   */
  readonly instance: number | null
  readonly identity: string
  readonly latestMs: number | null
}

/**
 * Creates the function that makes the changes of a group in an exclusive transaction. The function may reorder the operations of the group.
 * `marker` identifies the commit.
 */
export function createCommitChanges(
  { salt, key, replayForMs, process }: StoreSecrets,
  highWater: HighWater,
): (run: RunStatement, group: Group, marker: string) => Promise<Changed> {
  const hashKeys = createKeyHash(salt)
  return async (run, { instance, nowMs, ageMs, forgottenAgeMs, operations }, marker) => {
    const ofKind = <Kind extends Operation['kind']>(kind: Kind): readonly OperationOf<Kind>[] =>
      operations.filter((one): one is OperationOf<Kind> => one.kind === kind)
    const answered = ofKind('answered')
    const begins = ofKind('begin')
    const plain = begins.filter(({ batch }) => batch.replacesBatch === undefined)
    const settles = ofKind('settle')
    const beginnings = await hashAll(plain, hashKeys)
    const slot = slotOf(instance)
    const before = highWater.lastSlot() ?? slot
    const opening = run<OpeningRow>('open', slot, marker, begins.length, instance, before, process)
    const answeredBatches = answered.flatMap(({ batches }) => batches)
    const recording = answeredBatches.length === 0 ? [] : run('recordAnswered', json(answeredBatches))
    const [[opened], beginRows, settleRows] = await Promise.all([
      opening,
      readBegins(run, beginnings),
      readSettles(run, settles),
      recording,
    ])
    const { commits = 0, lastBatch = 0, latestMs } = opened ?? {}
    const found = { commits: opened?.before ?? 0, marker: opened?.beforeMarker ?? null }
    highWater.check({ identity: opened?.identity, commits, before: found }, instance)
    if (opened?.instance !== instance) return { ok: false, error: expired }

    const results = new Map<Operation, OperationResult>(answered.map((one) => [one, 'done']))
    let last = { lastBatch: lastBatch - begins.length, latestMs: latestMs ?? 0 }
    const createContext = (): ChangeContext => ({
      ...{ instance, nowMs, ageMs, replayForMs, forgottenAgeMs, hasKey: key !== undefined },
      changes: noChanges(),
    })
    const addBegun = (
      made: readonly OperationOf<'begin'>[],
      begun: readonly (BeginResult | 'full')[],
    ): void => {
      made.forEach((one, index) => {
        const result = begun[index]
        if (result === undefined) return
        results.set(one, result)
        if (result !== 'full' && result.kind === 'new')
          last = { lastBatch: result.batch, latestMs: result.receivedMs }
      })
    }
    const together = createContext()
    addBegun(plain, begin(together, beginnings, { ...last, ...beginRows }))
    const settled = settle(together, settles, settleRows, hashKeys)
    settles.forEach((one, index) => results.set(one, settled.results[index] ?? 'lost'))
    await supersedeOlder(run, together, settled.superseding)
    await writeRows(run, together, key)
    for (const operation of operations) {
      if (results.has(operation) || operation.kind === 'settle' || operation.kind === 'answered') continue
      const context = createContext()
      if (operation.kind === 'begin') {
        // Reads the rows again, because earlier operations of the group may have stored records that are newer than the batch to replace.
        const own = await hashAll([operation], hashKeys)
        const rows = { ...(await readBegins(run, own)), replaced: await readReplaced(run, operation) }
        addBegun([operation], begin(context, own, { ...last, ...rows }))
      } else if (operation.kind === 'takeOver') {
        const taken = await run<{ batch: number }>('takeOver', instance)
        results.set(operation, { lease: instance, batches: taken.map(({ batch }) => batch) })
      } else {
        const rows = await readBatch(run, operation.batch)
        if (operation.kind === 'forget') results.set(operation, forget(context, operation, rows))
        else results.set(operation, await reopenFrom(run, context, operation, rows))
      }
      await writeRows(run, context, key)
    }
    return { ok: true, results: operations.map((one) => results.get(one) ?? 'lost'), commits }
  }
}

async function hashAll(
  begins: readonly OperationOf<'begin'>[],
  hashKeys: HashKeys,
): Promise<readonly Beginning[]> {
  const beginnings: Beginning[] = []
  for (const { batch, hasRoom } of begins) {
    const keys: string[] = []
    for (let from = 0; from < batch.records.length; from += RECORDS_PER_TURN) {
      if (from > 0) await nextTurn()
      const part = batch.records.slice(from, from + RECORDS_PER_TURN)
      keys.push(...hashKeys(part.map((record) => record.key)))
    }
    beginnings.push({ batch, hasRoom, keys })
  }
  return beginnings
}

async function readBegins(
  run: RunStatement,
  beginnings: readonly Beginning[],
): Promise<{ readonly sameIds: readonly (readonly SameIds[])[]; readonly newestOpen: ByKey }> {
  const named = beginnings.flatMap(({ batch: { ids, owner, content } }, n) =>
    ids === undefined ? [] : [{ n, ids: toHex(ids), owner, content: toHex(content) }],
  )
  const keys = new Set(beginnings.flatMap((one) => one.keys))
  const [found, newest] = await Promise.all([
    named.length === 0 ? [] : run<SameIds & { n: number }>('sameIds', named),
    keys.size === 0 ? [] : run<KeyPlace>('newestOpen', json([...keys])),
  ])
  const byIndex = Map.groupBy(found, ({ n }) => n)
  return { sameIds: beginnings.map((_, n) => byIndex.get(n) ?? []), newestOpen: toByKey(newest) }
}

type KeyPlace = RecordRef & { readonly key: string }

const toByKey = (rows: readonly KeyPlace[]): ByKey =>
  new Map(rows.map(({ key, batch, position }) => [key, { batch, position }]))

async function readSettles(
  run: RunStatement,
  settles: readonly OperationOf<'settle'>[],
): Promise<SettleRows> {
  if (settles.length === 0) return { batches: new Map(), records: new Map() }
  const places = settles.flatMap(({ batch, outcomes }) =>
    outcomes.map(({ position }) => ({ batch, position })),
  )
  const [rows, found] = await Promise.all([
    run<BatchRow>('batches', json([...new Set(settles.map(({ batch }) => batch))])),
    run<SettledRecord>('recordsIn', places),
  ])
  const byBatch = Map.groupBy(found, ({ batch }) => batch)
  const records = new Map(
    [...byBatch].map(([batch, own]) => [batch, new Map(own.map((one) => [one.position, one]))]),
  )
  return { batches: new Map(rows.map((row) => [row.batch, row])), records }
}

async function supersedeOlder(
  run: RunStatement,
  { nowMs, changes }: ChangeContext,
  superseding: readonly Superseding[],
): Promise<void> {
  if (superseding.length === 0) return
  const ended = await Promise.all(
    [...supersededCodes].map(async ([old, next]) => {
      const also = { old, next, reason: reasonOfSuperseded(old, next), settled_ms: nowMs }
      const rows = superseding.map((one) => ({ ...one, ...also }))
      return { old, next, rows: await run<{ batch: number }>('supersede', rows) }
    }),
  )
  const ids = new Set(ended.flatMap(({ rows }) => rows.map(({ batch }) => batch)))
  const batches = ids.size === 0 ? [] : await run<BatchRow>('batches', json([...ids]))
  const partners = new Map(batches.map(({ batch, partner }) => [batch, partner]))
  for (const { old, next, rows } of ended)
    for (const { batch } of rows) move(changes, { batch, partner: partners.get(batch) ?? '' }, old, next, -1)
}

async function readBatch(run: RunStatement, batch: number): Promise<BatchRows | undefined> {
  const [[row], records] = await Promise.all([
    run<BatchRow>('batches', json([batch])),
    run<RecordRow>('recordsOf', batch),
  ])
  return row && { batch: row, records }
}

async function readStanding(
  run: RunStatement,
  records: readonly RecordRow[],
  { onV3Only }: { readonly onV3Only: boolean },
): Promise<ByKey> {
  const keys = [...new Set(records.map(({ key }) => key))]
  if (keys.length === 0) return new Map()
  return toByKey(await run<KeyPlace>(onV3Only ? 'standingOnV3' : 'standing', json(keys)))
}

async function readReplaced(run: RunStatement, { batch: { replacesBatch = 0 } }: OperationOf<'begin'>) {
  const rows = await readBatch(run, replacesBatch)
  return rows && { ...rows, standing: await readStanding(run, rows.records, { onV3Only: false }) }
}

async function reopenFrom(
  run: RunStatement,
  context: ChangeContext,
  operation: OperationOf<'reopen'>,
  rows: BatchRows | undefined,
): Promise<OperationResult> {
  if (rows === undefined) return { lease: context.instance, after: new Map() }
  const active = rows.records.filter((one) => one.active === 1)
  const standing = await readStanding(run, active, { onV3Only: operation.beforeRelay })
  const opened = chooseReopened(context, operation, rows, standing)
  const { batch } = operation
  const first = firstOfKeys(opened).map(({ position }) => position)
  const older = first.length === 0 ? [] : await run<KeyPlace>('olderOpen', batch, json(first))
  return reopen(context, operation, rows, opened, toByKey(older))
}

/** Writes all changes. Sends the statements to the database one after another, without waiting for the results of earlier statements. */
async function writeRows(
  run: RunStatement,
  { changes, instance }: ChangeContext,
  key: StoreSecrets['key'],
): Promise<void> {
  const sealed = await Promise.all(
    changes.blobs.map(async (blob) => ({ ...blob, ...(await seal(blob.plain, key, blob)) })),
  )
  const written: Promise<unknown>[] = []
  const write = (name: StatementName, ...values: StatementValues): void => {
    const ended = run(name, ...values)
    // `Promise.all` below reports the first failure. This handler keeps the later failures, which follow from the first, from counting as
    // unhandled rejections.
    ended.catch(() => undefined)
    written.push(ended)
  }
  if (changes.batches.length > 0) write('insertBatches', changes.batches)
  for (const { batch, keys } of changes.records)
    for (let from = 0; from < keys.length; from += RECORDS_PER_TURN) {
      if (from > 0) await nextTurn()
      write('insertRecords', batch, from, json(keys.slice(from, from + RECORDS_PER_TURN)))
    }
  for (const { kind, batch, keyId, body } of sealed) write(kind, batch, keyId, body)
  if (changes.outcomes.length > 0) write('settle', changes.outcomes)
  for (const [batch, positions] of changes.reopened) {
    write('reopen', batch, json(positions))
    write('changeInstance', batch, instance)
  }
  if (changes.counts.size > 0) {
    write(
      'changeCounts',
      [...changes.counts].map(([id, { states, active }]) => ({ id, ...toStateColumns(states), active })),
    )
    if (key !== undefined) write('dropCredentials', json([...changes.counts.keys()]))
  }
  if (changes.retired.length > 0) write('retire', json(changes.retired))
  if (changes.accepted.length > 0) write('accept', json(changes.accepted))
  if (changes.forgotten.length > 0) for (const name of deletions) write(name, json(changes.forgotten))
  const totals = totalsOf(changes)
  if (totals.length > 0) write('addToLedger', totals)
  await Promise.all(written)
}

const deletions = [
  'deletePayloads',
  'deleteCredentials',
  'deleteAnswers',
  'deleteRecords',
  'deleteBatches',
] as const

function totalsOf({ totals }: Changes): readonly object[] {
  return [...totals]
    .filter(([, own]) => own.some((n) => n !== 0))
    .map(([partner, own]) => ({ partner, ...toStateColumns(own) }))
}
