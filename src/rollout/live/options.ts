import type { WallClock } from '../../clock.ts'
import type { LiveStages, StagedPartner } from '../live-stages.ts'
import type { Stage } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import type { HeldWritesOptions } from './held-writes.ts'
import type { KeptSnapshots } from './kept-snapshot.ts'
import type { SideCounts } from './under-way.ts'

/** Where a stage comes from; `override`: lowered by the file. */
export type StageSource = 'store' | 'kept' | 'file' | 'override'

/** Who wants to know how the stages fare. Values are ids of partners, words and counts. */
export interface StageEvents {
  /** A partner is served by another setting; `from` is undefined at the first one. */
  changed(event: {
    readonly partner: string
    readonly from: Stage | undefined
    readonly to: Stage
    readonly percent: number
    readonly revision: number
    readonly source: StageSource
  }): void
  held: HeldWritesOptions['events']['held']
  refused: HeldWritesOptions['events']['refused']
  /** The stages could not be read for longer than they count; later: they are read again. */
  stale(): void
  fresh(): void
  /** The audit trail is not as it was written, or does not go on from what this instance knows. */
  trailDamaged(): void
  /** The last snapshot could not be kept: changes are not acknowledged until it can. */
  keepFailed(): void
}

export interface StoredStagesOptions {
  readonly store: Pick<
    RolloutStore,
    'snapshot' | 'begin' | 'apply' | 'acknowledge' | 'leave' | 'noteUnrecorded'
  >
  /** The number of the lease; undefined: others may have taken this instance for dead. */
  readonly instance: () => number | undefined
  /** Takes a lease again; never rejects. */
  readonly renewLease: () => Promise<unknown>
  readonly clock: WallClock
  readonly kept: KeptSnapshots
  /** All instances have the same; undefined while the journal cannot be opened. */
  readonly secret: () => Uint8Array | undefined
  /** Those of the configuration as it is now. */
  readonly partners: () => Iterable<StagedPartner>
  readonly events: StageEvents
  /** A partner that the store does not know begins here, whatever the file says; undefined: as the file says. */
  readonly unknownBeginAt: Stage | undefined
  /** What was read longer ago does not count. The store must count with the lease that was held at a read for at least as long. */
  readonly staleAfterMs: number
  /** How long V2 is served at `shadow` without the store. */
  readonly resendWindowMs: number
  /** How long a write waits for a change. Default: 15,000. */
  readonly holdMs?: number
  /** How long a write waits until the stage is read. Default: 2,000. */
  readonly staleWaitMs?: number
  /** Default: 500. */
  readonly pollMs?: number
  /** After this time the store is asked anew. Default: 1,000. */
  readonly patienceMs?: number
  /** Writes that may wait. Default: 1,000. */
  readonly maxHeld?: number
}

/** A partner as it is served now. */
export interface DescribedStage {
  readonly partner: string
  readonly stage: Stage
  readonly percent: number
  /** 0: the store does not know the partner. */
  readonly revision: number
  readonly source: StageSource
  /** The change that writes are held for. */
  readonly pendingRevision: number | undefined
  readonly clean: boolean
  readonly underWay: SideCounts
  readonly held: number
}

/** Stages that live in the store, as one instance sees them. */
export interface StoredStages extends LiveStages {
  /** Loads what was kept and begins to read; resolves once the store has answered, or is late. */
  start(): Promise<void>
  /** Refuses what waits and stops reading. To be called once no request is under way. */
  stop(): Promise<void>
  /** False while nothing is known: neither read nor kept. */
  isReady(): boolean
  /** Notes in the store, as soon as it can be reached, that V2 was given a write which the journal does not know. */
  noteUnrecorded(partner: string): void
  describe(): readonly DescribedStage[]
  /** Time since the stages were read, ms; undefined: not by this process. */
  viewAgeMs(): number | undefined
}
