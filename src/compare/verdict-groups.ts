import type { Verdict, VerdictCounts } from './verdict.ts'

const none: VerdictCounts = { same: 0, equivalent: 0, differs: 0, onlyV2: 0, onlyV3: 0, unknown: 0 }

/** Verdicts by the name of a group, in bounded memory. */
export interface VerdictGroups {
  add(name: string, verdict: Verdict, count?: number): void
  addAll(name: string, verdicts: VerdictCounts): void
  /** Ordered by name. */
  entries(): readonly (readonly [name: string, verdicts: VerdictCounts])[]
}

/** Creates groups; what comes for a new name when there are `max` is not grouped. */
export function createVerdictGroups(max: number): VerdictGroups {
  const groups = new Map<string, Record<Verdict, number>>()
  const groupOf = (name: string): Record<Verdict, number> | undefined => {
    const known = groups.get(name)
    if (known !== undefined || groups.size >= max) return known
    const added = { ...none }
    groups.set(name, added)
    return added
  }
  return {
    add: (name, verdict, count = 1) => {
      const group = groupOf(name)
      if (group !== undefined) group[verdict] += count
    },
    addAll: (name, verdicts) => {
      const group = groupOf(name)
      if (group !== undefined) addVerdicts(group, verdicts)
    },
    entries: () => [...groups].sort(([one], [other]) => (one < other ? -1 : 1)),
  }
}

/** Verdicts without any record. */
export function noVerdicts(): Record<Verdict, number> {
  return { ...none }
}

/** Adds the counts to those of the target. */
export function addVerdicts(target: Record<Verdict, number>, added: VerdictCounts): void {
  target.same += added.same
  target.equivalent += added.equivalent
  target.differs += added.differs
  target.onlyV2 += added.onlyV2
  target.onlyV3 += added.onlyV3
  target.unknown += added.unknown
}
