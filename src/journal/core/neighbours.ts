import { stateCodes } from '../lifecycle.ts'
import type { SettleOperation } from '../store/operations.ts'
import type { WrittenOutcome } from './rows.ts'

/** True for a record that was taken, and of which nothing else is to be kept. */
export const isConfirmed = ({ state, again, reason, deadLetter, superseded }: WrittenOutcome): boolean =>
  state === stateCodes.confirmed && again === null && reason === null && deadLetter === 0 && superseded === 0

/**
 * Where those end that begin at `from` and are written together: records of a batch next to each other that were confirmed, or one
 * of any other outcome. `outcomes` are in order of their positions.
 */
export function endOfNeighbours(outcomes: readonly WrittenOutcome[], from: number): number {
  let [end, last] = [from + 1, outcomes[from]]
  for (let next = outcomes[end]; last !== undefined && isConfirmed(last); next = outcomes[end]) {
    if (next?.position !== last.position + 1 || !isConfirmed(next)) break
    end += 1
    last = next
  }
  return end
}

/** Records of a batch next to each other, from the first to the last. */
export type Neighbours = readonly [batch: number, first: number, last: number]

/** The records that operations settle, each once; with `states` only those whose outcome is one of these. */
export function settledNeighbours(
  operations: readonly SettleOperation[],
  states?: ReadonlySet<number | undefined>,
): readonly Neighbours[] {
  const byBatch = new Map<number, number[]>()
  for (const operation of operations) {
    const positions = operation.positions.filter((_, index) => states?.has(operation.states[index]) ?? true)
    byBatch.set(operation.batch, [...(byBatch.get(operation.batch) ?? []), ...positions])
  }
  const found: Neighbours[] = []
  for (const [batch, positions] of byBatch) {
    positions.sort((one, other) => one - other)
    for (let start = 0, end = 0; start < positions.length; start = end) {
      const first = positions[start] ?? 0
      let last = first
      for (end = start + 1; end < positions.length && (positions[end] ?? 0) <= last + 1; end += 1)
        last = positions[end] ?? last
      found.push([batch, first, last])
    }
  }
  return found
}
