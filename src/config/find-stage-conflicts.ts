import type { ErrorDetail } from '../errors.ts'

type Members = Readonly<Record<string, unknown>>

/** The stages at which V2 serves, and those that keep what V2 served in the journal. */
const servedByV2: readonly unknown[] = ['legacy', 'shadow', 'canary']
const journaled: readonly unknown[] = ['shadow', 'canary']

/** Finds stages of a partner as written that cannot be served: without an address of V2, or without a journal. */
export function findStageConflicts(
  { stage, stageOverride, v2 }: Members,
  path: string,
  given: { readonly hasV2: boolean; readonly hasJournal: boolean },
): readonly ErrorDetail[] {
  const hasV2 = given.hasV2 || (typeof v2 === 'object' && v2 !== null && 'baseUrl' in v2)
  return Object.entries({ stage, stageOverride }).flatMap(([name, value]) => {
    const target = `${path}.${name}`
    if (servedByV2.includes(value) && !hasV2) {
      const message = `is served by V2: set upstreams.v2.baseUrl or ${path}.v2.baseUrl`
      return [{ code: 'conflict', message, target }]
    }
    if (journaled.includes(value) && !given.hasJournal) {
      const message = 'needs a journal: with journal.url: none a stage is legacy, v3 or complete'
      return [{ code: 'conflict', message, target }]
    }
    return []
  })
}
