import type { RequestKind, Side, Stage } from './stage.ts'

/** What a stage means for one kind of request. */
export interface StageRule {
  /** `unit`: the side of the unit, by the share of `canary`. */
  readonly serves: Side | 'unit'
  /**
   * What may be compared: `reply` sets the reply that the adapter would have built against that of V2 and reads V3 back; `answers` sets
   * answer against answer; `readBack` reads on V2 what V3 served.
   */
  readonly compares: 'nothing' | 'reply' | 'answers' | 'readBack'
}

const v2: StageRule = { serves: 'v2', compares: 'nothing' }
const v3: StageRule = { serves: 'v3', compares: 'nothing' }
const byUnit: StageRule = { serves: 'unit', compares: 'nothing' }
/** One rule for all paths but those of V3. */
const all = (rule: StageRule): Readonly<Record<RequestKind, StageRule>> => ({
  batch: rule,
  record: rule,
  readFilter: rule,
  readKey: rule,
  documents: rule,
  registrations: rule,
  otherV2: rule,
  v3Path: v3,
})
const writeRead = { serves: 'v2', compares: 'reply' } as const
const readRead = { serves: 'v2', compares: 'answers' } as const

/**
 * Who serves what, and what may be compared: the one table, which docs/migration.md has too. A write never goes to both sides. Paths of V3
 * go to V3 at every stage.
 */
export const stageTable: Readonly<Record<Stage, Readonly<Record<RequestKind, StageRule>>>> = {
  legacy: all(v2),
  shadow: {
    batch: writeRead,
    record: writeRead,
    readFilter: readRead,
    readKey: readRead,
    documents: v2,
    registrations: readRead,
    otherV2: v2,
    v3Path: v3,
  },
  canary: {
    batch: { serves: 'unit', compares: 'readBack' },
    record: { serves: 'unit', compares: 'readBack' },
    readFilter: { serves: 'unit', compares: 'answers' },
    readKey: { serves: 'unit', compares: 'answers' },
    documents: byUnit,
    registrations: { serves: 'unit', compares: 'answers' },
    otherV2: v2,
    v3Path: v3,
  },
  v3: {
    batch: { serves: 'v3', compares: 'readBack' },
    record: { serves: 'v3', compares: 'readBack' },
    readFilter: { serves: 'v3', compares: 'answers' },
    readKey: { serves: 'v3', compares: 'answers' },
    documents: v3,
    registrations: { serves: 'v3', compares: 'answers' },
    otherV2: v3,
    v3Path: v3,
  },
  complete: all(v3),
}
