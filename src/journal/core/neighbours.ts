import { stateCodes } from '../lifecycle.ts'
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
