import { stateCodes, supersededCode } from '../lifecycle.ts'
import { packAnswers } from '../store/answer-pack.ts'
import type { SettleOperation } from '../store/operations.ts'
import type { ChangeContext, KeptOutcome, SettledBatch, SettleRows, WrittenOutcome } from './rows.ts'

/** The shared changes of the settles of one batch; written when all of them are known. */
interface BatchChange {
  readonly row: SettledBatch
  readonly settled: Map<number, WrittenOutcome>
  readonly superseded: Set<number>
  readonly answers: (string | undefined)[]
  open: number
  active: number
}

/**
 * Settles records, each operation as a whole or not at all, and supersedes the older ones of keys that were confirmed. What V2 may have
 * applied supersedes as well: it is never read back, so nothing else would keep an older one from being posted over it. `again`:
 * nothing was written, and the rows are to be read for these operations alone.
 */
export function settle(
  context: ChangeContext,
  operations: readonly SettleOperation[],
  rows: SettleRows,
): readonly ('done' | 'lost' | 'again')[] {
  const { ledger, write } = context
  const changes = new Map<number, BatchChange>()
  const changeOf = (batch: number): BatchChange | undefined => {
    const row = rows.batches.get(batch)
    const known = changes.get(batch)
    if (known !== undefined || row === undefined) return known
    const change = { row, settled: new Map(), superseded: new Set<number>(), answers: [], open: 0, active: 0 }
    changes.set(batch, change)
    return change
  }
  const results = operations.map((operation): 'done' | 'lost' => {
    const change = changeOf(operation.batch)
    if (change === undefined) return 'lost'
    const isOwn =
      change.row.owner === context.instance &&
      (operation.lease === undefined || operation.lease === context.instance)
    const open = findOpen(operation, change, rows.closed.get(operation.batch), isOwn)
    if (open === 'lost') return 'lost'
    for (const index of open) add(context, change, operation, index)
    return 'done'
  })
  const older = rows.older(operations.filter((_, index) => results[index] === 'done'))
  if (older === undefined) return results.map((result) => (result === 'done' ? 'again' : result))
  for (const { batch, position, state } of older) {
    const change = changeOf(batch)
    if (change === undefined || change.superseded.has(position)) continue
    const settled = change.settled.get(position)
    const now = settled?.state ?? state
    const next = supersededCode(now)
    if (next === undefined || settled?.again === null) continue
    change.superseded.add(position)
    change.active -= 1
    if (next !== now) ledger.move(change.row.partner, now, next)
  }
  for (const [batch, { settled }] of changes) {
    const inOrder = [...settled.values()].sort((one, other) => one.position - other.position)
    if (inOrder.length > 0) write.settle(batch, inOrder)
  }
  for (const [batch, { superseded }] of changes) {
    if (superseded.size > 0) write.supersede(batch, [...superseded])
  }
  for (const [batch, { row, settled }] of changes) {
    const isAccepted = [...settled.values()].some(({ state }) => state === stateCodes.confirmed)
    if (row.newcomer === 0 || !isAccepted) continue
    write.accept(batch)
    if (row.retires !== null) write.retire(row.retires)
  }
  for (const [batch, { row, settled, answers, open, active }] of changes) {
    if (open !== 0 || active !== 0) {
      write.addCounts(batch, open, active)
      if (row.active + active === 0) write.dropCredentials(batch)
    }
    const pack = packAnswers([...settled.keys()], answers)
    if (pack !== undefined) write.seal('answers', { batch, owner: row.ownerId }, pack)
  }
  return results
}

/** Which outcomes of an operation are new. The same one once more, after an answer that got lost, is not an error; another one is. */
function findOpen(
  { positions, states, reasons }: SettleOperation,
  { settled }: BatchChange,
  closed: ReadonlyMap<number, KeptOutcome> | undefined,
  isOwn: boolean,
): readonly number[] | 'lost' {
  const open: number[] = []
  for (const [index, position] of positions.entries()) {
    const kept = settled.get(position) ?? closed?.get(position)
    if (kept === undefined && isOwn) open.push(index)
    else if (kept?.state !== states[index] || kept?.reason !== reasons[index]) return 'lost'
  }
  return open
}

function add(
  { ledger }: ChangeContext,
  change: BatchChange,
  { positions, states, retries, reasons, deadLetters, superseded, answers, marks }: SettleOperation,
  index: number,
): void {
  const position = positions[index] ?? -1
  const state = states[index] ?? stateCodes.refused
  const again = retries[index] ?? null
  change.settled.set(position, {
    position,
    state,
    again,
    reason: reasons[index] ?? null,
    deadLetter: deadLetters[index] ?? 0,
    superseded: superseded[index] ?? 0,
    mark: marks[index],
  })
  change.answers.push(answers[index])
  change.open -= 1
  if (again === null) change.active -= 1
  ledger.move(change.row.partner, stateCodes.open, state)
}
