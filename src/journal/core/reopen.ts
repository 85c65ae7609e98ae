import type { OperationOf } from '../group-commit.ts'
import type { RecordRef, ReopenResult } from '../journal.ts'
import { reopenableCodes, stateCodes } from '../lifecycle.ts'
import {
  type BatchRows,
  type ByKey,
  type ChangeContext,
  count,
  isNewer,
  move,
  type RecordRow,
} from './rows.ts'

const NONE: readonly RecordRef[] = []

/** The records of a batch that are opened again: active ones that no newer one of their key forbids. */
export function chooseReopened(
  { instance }: ChangeContext,
  { batch, positions }: OperationOf<'reopen'>,
  { batch: row, records }: BatchRows,
  standing: ByKey,
): readonly RecordRow[] {
  if (row.open > 0 && row.instance !== instance) return []
  const wanted = new Set(positions)
  return records.filter(({ position, state, active, key }) => {
    if (active === 0 || !reopenableCodes.has(state) || !wanted.has(position)) return false
    const newest = standing.get(key)
    return newest === undefined || !isNewer(newest, { batch, position })
  })
}

/** The first of these records for each key. */
export function firstOfKeys(records: readonly RecordRow[]): readonly RecordRow[] {
  return [...new Map(records.toReversed().map((one) => [one.key, one])).values()]
}

/**
 * Opens these records again and gives their batch to this instance. `older`: the nearest older open record of each key. Those that are
 * opened together wait for none of each other: the first of a key waits for all.
 */
export function reopen(
  { instance, hasKey, changes }: ChangeContext,
  { batch, credentials }: OperationOf<'reopen'>,
  { batch: row }: BatchRows,
  opened: readonly RecordRow[],
  older: ByKey,
): ReopenResult {
  for (const { state } of opened) move(changes, row.partner, state, stateCodes.open)
  if (opened.length > 0) {
    changes.reopened.set(
      batch,
      opened.map(({ position }) => position),
    )
    count(changes, batch, opened.length, 0)
    if (hasKey && credentials !== undefined)
      changes.blobs.push({ kind: 'credentials', batch, owner: row.owner, plain: Buffer.from(credentials) })
  }
  const lists = new Map([...older].map(([key, ref]) => [key, [ref]]))
  return {
    lease: instance,
    after: new Map(opened.map(({ position, key }) => [position, lists.get(key) ?? NONE])),
  }
}

/** Counts the open records of a batch as refused and deletes it. Nothing of it may have been applied, or be under way in another run. */
export function forget(
  { instance, changes }: ChangeContext,
  { batch, open, lease }: OperationOf<'forget'>,
  rows: BatchRows | undefined,
): 'done' | 'lost' {
  // It is gone already: the answer to an earlier attempt was lost.
  if (rows === undefined) return 'done'
  const isOwn = rows.batch.instance === instance && lease === instance
  const isWithoutOutcome = rows.records.every(
    ({ state }) => state === stateCodes.open || state === stateCodes.refused,
  )
  if (!isOwn || rows.batch.open !== open || !isWithoutOutcome) return 'lost'
  move(changes, rows.batch.partner, stateCodes.open, stateCodes.refused, open)
  changes.forgotten.push(batch)
  return 'done'
}
