/**
 * Commits by slot: instances that commit at the same time change different rows, and what one of them has lost is not made up by what the
 * others add.
 */
export type CommitCounts = ReadonlyMap<number, number>

/** Stands for all slots together, in a mark of a version that kept their sum alone. */
export const ALL_SLOTS = -1

export const totalOf = (counts: CommitCounts): number =>
  [...counts.values()].reduce((total, count) => total + count, 0)

/** How many of the known commits are not among those found. */
export function missingOf(found: CommitCounts, known: CommitCounts): number {
  const missing = [...known].map(([slot, count]) =>
    Math.max(0, count - (slot === ALL_SLOTS ? totalOf(found) : (found.get(slot) ?? 0))),
  )
  return missing.reduce((total, count) => total + count, 0)
}

/** The counts with one commit more. */
export const withOneMore = (counts: CommitCounts, slot: number): CommitCounts =>
  new Map(counts).set(slot, (counts.get(slot) ?? 0) + 1)

/** `0:12,1:5`; `12` where there is the first slot alone, as in SQLite. */
export function formatCounts(counts: CommitCounts): string {
  const all = [...counts].filter(([slot]) => slot !== ALL_SLOTS)
  const [[slot, count] = []] = all
  return all.length === 1 && slot === 0 ? String(count) : all.map((one) => one.join(':')).join(',')
}

/** Reads such a text; a number alone may be a sum. */
export function parseCounts(text: string): CommitCounts {
  if (text === '') return new Map()
  if (!text.includes(':')) return new Map([[ALL_SLOTS, Number(text)]])
  return new Map(
    text.split(',').map((one) => {
      const [slot, count] = one.split(':')
      return [Number(slot), Number(count)] as const
    }),
  )
}
