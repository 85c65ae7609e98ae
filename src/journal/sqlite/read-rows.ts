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
import { settledNeighbours, supersedingNeighbours } from '../core/neighbours.ts'
import { stateCodes } from '../lifecycle.ts'
import { addSameIds, type SameIds, toNumbers, toSameIds } from '../judge-arrival.ts'
import { sideCodes } from '../side.ts'
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
  const sameIds = new Map<string, SameIds[]>()
  for (const { owner, ids, content } of operations) {
    if (ids === undefined) continue
    const found = on.sameIds.all(ids, owner, content).map((row) => toSameIds(row as unknown as BatchRow))
    if (found.length > 0) addSameIds(sameIds, nameOf(owner, ids), found)
  }
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
  const older: SettleRows['older'] = (done) => {
    const found = readSuperseded(on, done, (batch) => batches.get(batch)?.side === sideCodes.v2)
    for (const { batch } of found) if (!batches.has(batch)) addBatch(on, batches, batch, 0, -1)
    return found
  }
  return { batches, closed, older }
}

/** One step for each record and each key, however the records divide into keys. */
function readSuperseded(
  on: GroupStatements,
  operations: readonly SettleOperation[],
  isOnV2: (batch: number) => boolean,
): OlderRecord[] {
  const all = supersedingNeighbours(operations)
  const readsAll = all.some(({ isLive }) => isLive) ? 1 : 0
  const newest = new Map<string, Place>()
  const live: { readonly batch: number; readonly position: number; readonly key: string }[] = []
  for (const { stands, isLive, neighbours } of all) {
    const [batch] = neighbours
    const isStanding = stands === 'always' || (stands === 'onV2' && isOnV2(batch))
    for (const row of on.keys.all(...neighbours, readsAll)) {
      const [position, bytes] = row as unknown as [number, unknown]
      const key = nameOfKey(bytes)
      if (isStanding && isOlder(newest.get(key) ?? NONE, [batch, position]))
        newest.set(key, [batch, position])
      if (isLive) live.push({ batch, position, key })
    }
  }
  const settled = live.flatMap(({ batch, position, key }): OlderRecord[] =>
    isOlder([batch, position], newest.get(key) ?? NONE) ? [{ batch, position, state: stateCodes.open }] : [],
  )
  const before = [...newest].flatMap(([key, place]) =>
    on.older.all(Buffer.from(key, 'latin1'), ...place).map((row): OlderRecord => {
      const [batch, position, state] = row as unknown as [number, number, number]
      return { batch, position, state }
    }),
  )
  return [...settled, ...before]
}

const NONE: Place = [0, 0]
const isOlder = ([batch, position]: Place, [newer, at]: Place): boolean =>
  batch < newer || (batch === newer && position < at)

/** Reads a batch, and how many of its records from one position to another are open. */
function addBatch(
  on: GroupStatements,
  batches: Map<number, SettledBatch>,
  batch: number,
  from: number,
  to: number,
): number {
  const row = on.settledBatch.get(batch, from, to, batch) as unknown as
    [string, string, number, number, number, number, string | null, number] | undefined
  if (row === undefined) return 0
  const [partner, ownerId, owner, active, side, newcomer, retires, open] = row
  if (!batches.has(batch))
    batches.set(batch, { partner, ownerId, owner, active, side, newcomer, retires: toNumbers(retires) })
  return open
}

/** A key as text. A damaged column of SQLite may hold another type than its own. */
const nameOfKey = (bytes: unknown): string =>
  Buffer.from(bytes instanceof Uint8Array ? bytes : []).toString('latin1')

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
    const is = { isActive: live === 1, isSuperseded: superseded === 1, isIntact: intact === 1 }
    return { position, state, ...is, key: nameOfKey(key) }
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
