import { nameOf } from '../core/begin.ts'
import { type Neighbours, settledNeighbours, supersedingNeighbours } from '../core/neighbours.ts'
import type {
  BatchRows,
  BeginRows,
  KeptOutcome,
  Later,
  OlderRecord,
  SettledBatch,
  SettleRows,
} from '../core/rows.ts'
import { addSameIds, type SameIds, toNumbers, toSameIds } from '../judge-arrival.ts'
import type { SummedBatch } from '../schema/row-sums.ts'
import type { BeginOperation, SettleOperation } from '../store/operations.ts'
import { byteArrays, numbers } from './literals.ts'
import type { StatementQueue } from './statement-queue.ts'

type BatchRow = SummedBatch & { readonly id: number; readonly sum: number | null }

/** Queues the reads of begins. The transaction holds the lock under which all begin. */
export function readBegin(
  queue: StatementQueue,
  operations: readonly BeginOperation[],
): Later<Omit<BeginRows, 'isOlderServed'>> {
  const named = operations.flatMap(({ ids, content }) => (ids === undefined ? [] : [{ ids, content }]))
  const same =
    named.length === 0
      ? () => []
      : queue.add<BatchRow>(
          'sameIds',
          byteArrays(named.map(({ ids }) => ids)),
          byteArrays(named.map(({ content }) => content)),
        )
  const taken = queue.add<{ id: number; latest: number | null }>('numbers', String(operations.length))
  const [first] = operations
  const replaced =
    first?.instead === undefined ? () => undefined : readBatch(queue, first.instead, [...first.keys.keys()])
  return () => {
    const names = new Set(
      operations.flatMap(({ owner, ids: own }) => (own === undefined ? [] : [nameOf(owner, own)])),
    )
    const sameIds = new Map<string, SameIds[]>()
    for (const row of same()) {
      const name = nameOf(row.owner_id, row.ids ?? new Uint8Array())
      if (!names.has(name)) continue
      addSameIds(sameIds, name, [toSameIds(row)])
    }
    const rows = taken()
    return {
      sameIds,
      numbers: rows.map(({ id }) => id).sort((one, other) => one - other),
      latestMs: rows[0]?.latest ?? 0,
      replaced: replaced(),
    }
  }
}

const STANDS = { always: 2, onV2: 1, never: 0 } as const
/** No outcome has this state. */
const MISSING = -1

/** Queues the reads of settles, with locks on their batches and on those of `further` ones. */
export function readSettle(
  queue: StatementQueue,
  operations: readonly SettleOperation[],
  further: readonly number[],
): Later<SettleRows> {
  const superseding = supersedingNeighbours(operations)
  const locked = queue.add<{
    id: number
    partner: string
    owner_id: string
    owner: number
    live: number
    side: number
    newcomer: number
    retires: string | null
  }>('lockSettled', numbers([...new Set([...operations.map(({ batch }) => batch), ...further])]))
  const notOpen = queue.add<{ batch: number; position: number; state: number | null; reason: string | null }>(
    'closed',
    ...columns(settledNeighbours(operations)),
  )
  const found =
    superseding.length === 0
      ? () => []
      : queue.add<OlderRecord>(
          'older',
          ...columns(superseding.map(({ neighbours }) => neighbours)),
          numbers(superseding.map(({ stands }) => STANDS[stands])),
          numbers(superseding.map(({ isLive }) => (isLive ? 1 : 0))),
        )
  return () => {
    const closed = new Map<number, Map<number, KeptOutcome>>()
    for (const { batch, position, state, reason } of notOpen()) {
      const known = closed.get(batch) ?? new Map<number, KeptOutcome>()
      closed.set(batch, known.set(position, { state: state ?? MISSING, reason }))
    }
    const rows = locked().map((row): [number, SettledBatch] => [
      row.id,
      {
        partner: row.partner,
        ownerId: row.owner_id,
        owner: row.owner,
        active: row.live,
        side: row.side,
        newcomer: row.newcomer,
        retires: toNumbers(row.retires),
      },
    ])
    const all = found()
    const older: SettleRows['older'] = ({ length }) =>
      length === operations.length || all.length === 0 ? all : undefined
    return { batches: new Map(rows), closed, older }
  }
}

/** The batches, the first and the last positions as parameters. */
const columns = (all: readonly Neighbours[]): readonly string[] =>
  ([0, 1, 2] as const).map((column) => numbers(all.map((neighbours) => neighbours[column])))

/** Queues the reads of one batch with its records; `wanted`: positions that may be opened again. */
export function readBatch(
  queue: StatementQueue,
  batch: number,
  wanted: readonly number[],
  standing: 'standing' | 'standingOnV3' = 'standing',
): Later<BatchRows | undefined> {
  const locked = queue.add<BatchRow>('lockBatch', String(batch))
  const all = queue.add<{
    position: number
    state: number
    live: number
    superseded: number
    key: string
    intact: number
  }>('records', String(batch))
  const newest = queue.add<{ key: string; batch: number; position: number }>(
    standing,
    String(batch),
    numbers(wanted),
  )
  return () => {
    const [row] = locked()
    if (row === undefined) return undefined
    const byKey = new Map(newest().map(({ key, ...place }) => [key, place]))
    return {
      batch: row,
      records: all().map(({ position, state, live, superseded, key, intact }) => {
        const is = { isActive: live === 1, isSuperseded: superseded === 1, isIntact: intact === 1 }
        return { position, state, ...is, key }
      }),
      standing: (key) => byKey.get(key),
    }
  }
}
