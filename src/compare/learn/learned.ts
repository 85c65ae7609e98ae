import { addCounts, countsOf, type KeptEvidence } from '../../rollout/index.ts'

/** Names of counts, and in how many exchanges each was seen. */
export type Learned = ReadonlyMap<string, number>

/** What all instances have learned of a partner, at any stage. */
export function learnedOf(kept: readonly KeptEvidence[]): Learned {
  const learned = new Map<string, number>()
  for (const { counts } of kept)
    addCounts(
      learned,
      countsOf(counts, 'learned').map(({ fields: [name = ''], count }) => [name, count]),
    )
  return learned
}
