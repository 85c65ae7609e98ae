import { stateCodes, supersededCode } from '../lifecycle.ts'
import type { SettleOperation } from '../store/operations.ts'
import type { WrittenOutcome } from './rows.ts'

/** True for a record that was taken, and of which nothing else is to be kept. */
export const isConfirmed = ({ state, again, reason, deadLetter, superseded }: WrittenOutcome): boolean =>
  state === stateCodes.confirmed && again === null && reason === null && deadLetter === 0 && superseded === 0

/**
 * Where those end that begin at `from` and are written together: records of a batch next to each other with the same outcome.
 * `outcomes` are in order of their positions.
 */
export function endOfNeighbours(outcomes: readonly WrittenOutcome[], from: number): number {
  let [end, last] = [from + 1, outcomes[from]]
  for (let next = outcomes[end]; last !== undefined && next !== undefined; next = outcomes[end]) {
    if (next.position !== last.position + 1 || !isSameOutcome(next, last)) break
    end += 1
    last = next
  }
  return end
}

const isSameOutcome = (one: WrittenOutcome, other: WrittenOutcome): boolean =>
  one.state === other.state &&
  one.again === other.again &&
  one.reason === other.reason &&
  one.deadLetter === other.deadLetter &&
  one.superseded === other.superseded

/** What an outcome means for others of its key. `stands`: it may supersede older ones, always or if V2 serves it. `isLive`: it may be superseded. */
export interface Standing {
  readonly stands: 'always' | 'onV2' | 'never'
  readonly isLive: boolean
}

const standings: readonly Standing[] = (['always', 'onV2', 'never'] as const).flatMap((stands) => [
  { stands, isLive: false },
  { stands, isLive: true },
])

/** The settled records that may supersede others, with those of the same operations that they may supersede; none without the former. */
export function supersedingNeighbours(
  operations: readonly SettleOperation[],
): readonly (Standing & { readonly neighbours: Neighbours })[] {
  const found = standings.flatMap(({ stands, isLive }) => {
    if (stands === 'never' && !isLive) return []
    const isLike = ({ states, retries }: SettleOperation, index: number): boolean =>
      standsOf(states[index]) === stands &&
      (retries[index] !== null && supersededCode(states[index] ?? -1) !== undefined) === isLive
    return settledNeighbours(operations, isLike).map((neighbours) => ({ stands, isLive, neighbours }))
  })
  return found.some(({ stands }) => stands !== 'never') ? found : []
}

/** What V2 may have applied is never read back, so nothing else would keep an older record from being posted over it. */
function standsOf(state: number | undefined): Standing['stands'] {
  if (state === stateCodes.confirmed) return 'always'
  return state === stateCodes.unknown ? 'onV2' : 'never'
}

/** Records of a batch next to each other, from the first to the last. */
export type Neighbours = readonly [batch: number, first: number, last: number]

/** The records that operations settle, each once; with `isWanted` only those outcomes. */
export function settledNeighbours(
  operations: readonly SettleOperation[],
  isWanted: (operation: SettleOperation, index: number) => boolean = () => true,
): readonly Neighbours[] {
  const byBatch = new Map<number, number[]>()
  for (const operation of operations) {
    const own = byBatch.get(operation.batch) ?? []
    byBatch.set(operation.batch, own)
    for (const [index, position] of operation.positions.entries())
      if (isWanted(operation, index)) own.push(position)
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
