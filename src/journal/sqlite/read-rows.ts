import type {
  BatchRecord,
  BatchRows,
  BeginRows,
  KeptOutcome,
  OlderRecord,
  SettledBatch,
  SettleRows,
} from '../core/rows.ts'
import { nameOf } from '../core/begin.ts'
import { settledNeighbours } from '../core/neighbours.ts'
import { stateCodes } from '../lifecycle.ts'
import { toSameIds } from '../judge-arrival.ts'
import type { SummedBatch } from '../schema/row-sums.ts'
import type { BeginOperation, SettleOperation } from '../store/operations.ts'
import type { GroupStatements } from './statements.ts'

type BatchRow = SummedBatch & { readonly id: number; readonly sum: number | null }
type Place = readonly [batch: number, position: number]

/** Reads what begins need. The transaction holds the only lock for writing. */
export function readBegin(
  on: GroupStatements,
  operations: readonly BeginOperation[],
  isOlderServed: boolean,
): BeginRows {
  const sameIds: BeginRows['sameIds'] = new Map(
    operations.flatMap(({ owner, ids }) => {
      const rows = ids === undefined ? [] : on.sameIds.all(ids, owner)
      return ids === undefined || rows.length === 0
        ? []
        : [[nameOf(owner, ids), rows.map((row) => toSameIds(row as unknown as BatchRow))]]
    }),
  )
  const [newest = 0, latestMs = 0] = on.newestBatch.get() as unknown as readonly number[]
  const numbers = operations.map((_, index) => newest + 1 + index)
  const instead = operations[0]?.instead
  const replaced = instead === undefined ? undefined : readBatch(on, instead)
  return { sameIds, numbers, latestMs, isOlderServed, replaced }
}

/** No outcome has this state. */
const MISSING: KeptOutcome = { state: -1, reason: null }

/** Reads what settles need: for most, that all of their records are open. */
export function readSettle(on: GroupStatements, operations: readonly SettleOperation[]): SettleRows {
  const batches = new Map<number, SettledBatch>()
  const closed = new Map<number, Map<number, KeptOutcome>>()
  const older: OlderRecord[] = []
  for (const [batch, first, last] of settledNeighbours(operations)) {
    // Batch and records with one call: it takes longer than the rows.
    const open = addBatch(on, batches, batch, first, last)
    for (let position = first; open !== last - first + 1 && position <= last; position += 1) {
      const row = on.outcome.get(batch, position) as unknown as [number, string | null] | undefined
      const kept = row === undefined ? MISSING : { state: row[0], reason: row[1] }
      if (kept.state === stateCodes.open) continue
      const known = closed.get(batch) ?? new Map<number, KeptOutcome>()
      closed.set(batch, known.set(position, kept))
    }
  }
  for (const { batch } of operations) if (!batches.has(batch)) addBatch(on, batches, batch, 0, -1)
  for (const [batch, [from, to]] of standingByBatch(operations)) {
    for (const row of on.older.all(batch, from, to) as unknown as number[][]) {
      const [olderBatch = 0, position = 0, state = 0, by = 0] = row
      older.push({ batch: olderBatch, position, state, by: { batch, position: by } })
      if (!batches.has(olderBatch)) addBatch(on, batches, olderBatch, 0, -1)
    }
  }
  return { batches, closed, older }
}

/** Reads a batch, and how many of its records from one position to another are open. */
function addBatch(
  on: GroupStatements,
  batches: Map<number, SettledBatch>,
  batch: number,
  from: number,
  to: number,
): number {
  const row = on.settledBatch.get(batch, from, to, batch) as unknown as
    [string, string, number, number, number, number] | undefined
  if (row === undefined) return 0
  const [partner, ownerId, owner, active, side, open] = row
  if (!batches.has(batch)) batches.set(batch, { partner, ownerId, owner, active, side })
  return open
}

/** The first and the last position of each batch that was applied, or may have been. */
function standingByBatch(operations: readonly SettleOperation[]): ReadonlyMap<number, Place> {
  const ends = new Map<number, Place>()
  for (const { batch, positions, states } of operations) {
    for (const [index, position] of positions.entries()) {
      if (states[index] !== stateCodes.confirmed && states[index] !== stateCodes.unknown) continue
      const [from, to] = ends.get(batch) ?? [position, position]
      ends.set(batch, [Math.min(from, position), Math.max(to, position)])
    }
  }
  return ends
}

/** Reads a batch with its records; undefined: there is none. */
export function readBatch(
  on: GroupStatements,
  batch: number,
  standing: 'standing' | 'standingOnV3' = 'standing',
): BatchRows | undefined {
  const row = on.batch.get(batch)
  if (row === undefined) return undefined
  const rows = on.recordsOf.all(batch) as unknown as [number, number, number, number, unknown, number][]
  const records = rows.map(([position, state, live, superseded, key, intact]): BatchRecord => {
    // A damaged column of SQLite may hold another type than its own.
    const bytes = Buffer.from(key instanceof Uint8Array ? key : [])
    const is = { isActive: live === 1, isSuperseded: superseded === 1, isIntact: intact === 1 }
    return { position, state, ...is, key: bytes.toString('latin1') }
  })
  const known = new Map<string, Place | undefined>()
  return {
    batch: row as unknown as BatchRow,
    records,
    standing: (key) => {
      if (!known.has(key)) {
        known.set(key, on[standing].get({ key: Buffer.from(key, 'latin1') }) as unknown as Place | undefined)
      }
      const place = known.get(key)
      return place === undefined ? undefined : { batch: place[0], position: place[1] }
    },
  }
}
