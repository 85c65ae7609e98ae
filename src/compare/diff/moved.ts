/** True when each number is larger than the one before it. */
export function isIncreasing(numbers: readonly number[]): boolean {
  for (let at = 1; at < numbers.length; at += 1)
    if ((numbers[at] ?? 0) <= (numbers[at - 1] ?? 0)) return false
  return true
}

/**
 * The fewest places that have to be taken out so that the rest of the numbers increases: one row that moved is one place, not all places
 * behind it. The numbers differ from each other. O(n log n).
 */
export function movedPlaces(numbers: readonly number[]): ReadonlySet<number> {
  // tails[n]: where the smallest end of an increasing sequence of n + 1 numbers stands.
  const tails: number[] = []
  const previous = new Int32Array(numbers.length).fill(-1)
  for (const [at, value] of numbers.entries()) {
    const length = lengthBelow(tails, numbers, value)
    if (length > 0) previous[at] = tails[length - 1] ?? -1
    tails[length] = at
  }
  const kept = new Set<number>()
  for (let at = tails.at(-1) ?? -1; at !== -1; at = previous[at] ?? -1) kept.add(at)
  return new Set([...numbers.keys()].filter((at) => !kept.has(at)))
}

/** How many of the tails end below the value. */
function lengthBelow(tails: readonly number[], numbers: readonly number[], value: number): number {
  let low = 0
  let high = tails.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((numbers[tails[middle] ?? 0] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
