import type { RecordRef } from '../journal.ts'
import { stateCodes } from '../lifecycle.ts'
import { judgeArrival } from '../judge-arrival.ts'
import { toSideCode } from '../side.ts'
import { type SummedBatch, sumOfBatch } from '../schema/row-sums.ts'
import { packAnswers } from '../store/answer-pack.ts'
import { type BeginOperation, type CommittedBegin, forAllOfKey } from '../store/operations.ts'
import { bytesOf } from '../kept-bytes.ts'
import type { BatchRows, BeginRows, ChangeContext, Later } from './rows.ts'

/** The name of a batch among those of all owners. */
export const nameOf = (owner: string, ids: Uint8Array): string =>
  `${Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength).toString('hex')} ${owner}`

/** Begins batches in their order: each is new, or a repetition. */
export function begin(
  context: ChangeContext,
  operations: readonly BeginOperation[],
  rows: BeginRows,
): readonly Later<CommittedBegin>[] {
  const { instance, write } = context
  const sameIds = new Map(rows.sameIds)
  let { latestMs } = rows
  let begun = 0
  return operations.map((operation) => {
    const { owner, ids, content, side, keys, refused } = operation
    const name = ids === undefined ? undefined : nameOf(owner, ids)
    const earlier = (name === undefined ? undefined : sameIds.get(name)) ?? []
    const { known, idsReused, retired, ...others } = judgeArrival(operation, context, earlier)
    const newer = known === undefined ? newerThan(rows.replaced, operation) : undefined
    if (newer !== undefined) {
      const batch = operation.instead ?? 0
      return () => ({ kind: 'known', batch, running: false, side: 'v2', ...others, newer })
    }
    // Nothing of a request changes what is kept for its owner before its credentials are accepted.
    const later = operation.newcomer && known === undefined ? retired : []
    const now = operation.newcomer ? [] : retired
    if (now.length > 0) write.retire(now)
    const left = earlier.filter((one) => !now.includes(one.batch))
    if (name !== undefined) sameIds.set(name, left)
    if (known !== undefined) {
      const { batch, running, side } = known
      return () => ({ kind: 'known', batch, running, side, ...others })
    }
    const batch = rows.numbers[begun++] ?? 0
    // Times of receipt never run backwards, whatever a clock does: a later mark never has an earlier time.
    latestMs = Math.max(latestMs, operation.receivedMs)
    const receivedMs = latestMs
    const open = keys.length - refused.positions.length
    if (name !== undefined) {
      sameIds.set(name, [{ batch, side, content, receivedMs, running: open > 0, answered: false }, ...left])
    }
    insert(context, operation, { batch, receivedMs, open, retires: later })
    if (rows.isOlderServed) write.dropSums(batch)
    const older = open === 0 ? () => [] : write.olderOpen(batch, firstOpen(operation))
    return () => {
      const after = forAllOfKey(keys.keys(), (position) => keys[position], older())
      return { kind: 'new', batch, lease: instance, after, receivedMs, idsReused }
    }
  })
}

/**
 * The newer records of keys of a replaced batch that are open or unknown: a batch that takes its place now would come after them. Empty:
 * newer ones were confirmed; undefined: there are none, or the batches do not have the same records.
 */
function newerThan(
  replaced: BatchRows | undefined,
  { keys, refused, instead = 0 }: BeginOperation,
): readonly RecordRef[] | undefined {
  if (replaced === undefined || replaced.records.length !== keys.length) return undefined
  const closed = new Set(refused.positions)
  const sent = replaced.records.filter(({ position }) => !closed.has(position))
  const newer = sent.flatMap(({ key }) => {
    const standing = replaced.standing(key)
    return standing === undefined || standing.batch <= instead ? [] : [standing]
  })
  return newer.length > 0 || sent.some(({ isSuperseded }) => isSuperseded) ? newer : undefined
}

/** What a begun batch has besides its operation. */
interface Begun {
  readonly batch: number
  readonly receivedMs: number
  readonly open: number
  readonly retires: readonly number[]
}

function insert(
  { instance, hasKey, ledger, write }: ChangeContext,
  operation: BeginOperation,
  { batch, receivedMs, open, retires }: Begun,
): void {
  const { partner, owner, ids = null, content, payload, credentials, refused } = operation
  const row: SummedBatch = {
    partner,
    owner_id: owner,
    ids,
    content,
    received_ms: receivedMs,
    owner: instance,
    open,
    live: open,
    answered: 0,
    retired: 0,
    side: toSideCode(operation.side),
  }
  write.insertBatch({
    ...row,
    id: batch,
    sum: sumOfBatch(row),
    newcomer: operation.newcomer ? 1 : 0,
    retires: retires.length > 0 ? JSON.stringify(retires) : null,
    bytes: bytesOf(payload, operation.keys),
    operation,
  })
  const of = { batch, owner }
  write.seal('payload', of, payload)
  if (hasKey && credentials !== undefined && open > 0) {
    write.seal('credentials', of, Buffer.from(credentials))
  }
  const pack = packAnswers(refused.positions, refused.answers)
  if (pack !== undefined) write.seal('answers', of, pack)
  ledger.move(partner, undefined, stateCodes.open, open)
  ledger.move(partner, undefined, stateCodes.refused, refused.positions.length)
}

/** The first open record of each key: what it waits for, the others of its key wait for. */
function firstOpen({ keys, refused }: BeginOperation): readonly number[] {
  const closed = new Set(refused.positions)
  const seen = new Set<string>()
  const first: number[] = []
  keys.forEach((key, position) => {
    if (seen.has(key) || closed.has(position)) return
    seen.add(key)
    first.push(position)
  })
  return first
}
