import type { Side } from '../stage.ts'
import type { LogEvidence } from './change-evidence.ts'
import type { BadOutcome } from './trial-windows.ts'

/** Trials of one side, with those of each bad outcome. */
export type TrialCounts = Readonly<Record<BadOutcome | 'trials', number>>

/** Both sides in the same windows. */
export type CountedSides = Readonly<Record<Side, TrialCounts>>

/** What is known about one partner, over all instances, since its stage or share changed or a guard acted; it outlives restarts. */
export interface Evidence {
  /** The stage and share that it is about. */
  readonly revision: number
  /** From 1: how often it has begun anew. */
  readonly episode: number
  /** When a guard acted at this stage and share: for the time of the cool-down nothing is counted. */
  readonly actedMs?: number | undefined
  /** All trials. */
  readonly counted: Readonly<Record<Side, number>>
  /** Windows that said anything. */
  readonly windows: number
  readonly logs: LogEvidence
  /** What it would be without each unit of V3 that had bad outcomes. */
  readonly without: ReadonlyMap<string, LogEvidence>
  /** The first unit that V3 served, and whether it served others. */
  readonly firstUnit?: string | undefined
  readonly hasOthers: boolean
  /** Since the evidence last spoke for V3: the figures behind an alarm. */
  readonly recent: CountedSides
}

const noTrials: TrialCounts = { trials: 0, unknown: 0, serverError: 0, refused: 0, slow: 0 }
export const noRecent: CountedSides = { v2: noTrials, v3: noTrials }

/** Evidence before the first window. */
export const noEvidence: Evidence = {
  revision: 0,
  episode: 1,
  counted: { v2: 0, v3: 0 },
  windows: 0,
  logs: [],
  without: new Map(),
  hasOthers: false,
  recent: noRecent,
}

/**
 * The evidence for writes of this stage and share: that of another one says nothing about them. Not only a later one: revisions begin anew
 * after a damaged row.
 */
export function atRevision(evidence: Evidence, revision: number): Evidence {
  if (revision === evidence.revision) return evidence
  const { windows, episode } = evidence
  return { ...noEvidence, revision, episode: episode + (windows > 0 ? 1 : 0) }
}

/** The evidence after an action. */
export function afterAct({ revision, episode }: Evidence, actedMs: number): Evidence {
  return { ...noEvidence, revision, episode: episode + 1, actedMs }
}
