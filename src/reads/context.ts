import type { ReadPlanner } from '../translate/index.ts'
import type { V3Reader } from '../v3/index.ts'
import type { Clock } from '../clock.ts'
import type { UnmarkedCodes } from './unmarked-codes.ts'

/** The parts that the read engine works with; created once by the composition root. */
export interface ReadContext {
  readonly planner: ReadPlanner
  readonly reader: V3Reader
  readonly codes: UnmarkedCodes
  /** Counts budgets of time. */
  readonly clock: Clock
  /** Signs next links; the same in all instances of an adapter. */
  readonly linkSecret: Uint8Array
}
