/** Counts under keys, in bounded memory: the first keys are kept apart, all later ones share `overflow`. */
export interface BoundedCounts {
  add(key: string, count?: number): void
  get(key: string): number
  /** Key and count, in the order of their first appearance. */
  entries(): readonly (readonly [key: string, count: number])[]
}

/** Creates counts with at most `max` keys, besides those that `overflowOf` gives for the others. */
export function createBoundedCounts(max: number, overflowOf: (key: string) => string): BoundedCounts {
  const counts = new Map<string, number>()
  const add = (key: string, count: number): void => {
    counts.set(key, (counts.get(key) ?? 0) + count)
  }
  return {
    add: (key, count = 1) => {
      if (counts.has(key) || counts.size < max) add(key, count)
      else add(overflowOf(key), count)
    },
    get: (key) => counts.get(key) ?? 0,
    entries: () => [...counts],
  }
}
