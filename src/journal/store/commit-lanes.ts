import type { Ageing } from '../ageing.ts'
import type { Lease } from '../lease/lease.ts'
import type { Availability } from './availability.ts'
import type { WallClock } from '../../clock.ts'
import type { CommitGate } from './commit-gate.ts'
import { createGroupCommit, type GroupCommit } from './group-commit.ts'
import type { Operation } from './operations.ts'
import type { Committed, Store } from './store.ts'

export interface LaneOptions {
  readonly store: Store
  readonly clock: WallClock
  readonly lease: Lease
  readonly availability: Availability
  readonly ageing: Pick<Ageing, 'forgottenBatch'>
}

/** The ways to the store. */
export interface CommitLanes {
  /** Where an operation queues: settles have their own lanes where the store lets them. */
  of(kind: Operation['kind']): GroupCommit
  idle(): Promise<void>
}

/** Creates the lanes of a store. */
export function createCommitLanes({ store, clock, lease, availability, ageing }: LaneOptions): CommitLanes {
  const commitAs = (operations: readonly Operation[], gate: CommitGate): Promise<Committed> =>
    store.commit({
      instance: lease.instance(),
      nowMs: Math.round(clock.wallMs()),
      forgottenBatch: ageing.forgottenBatch(),
      operations,
      gate,
    })
  const commit = async (operations: readonly Operation[], gate: CommitGate): Promise<Committed> => {
    const committed = await commitAs(operations, gate)
    if (committed.ok || committed.error.kind !== 'expired') return committed
    // The lease has expired: batches that begin from now on belong to a new number.
    try {
      await lease.renew()
    } catch (error) {
      return { ok: false, error: { ...store.toStoreError(error), kind: 'transient' } }
    }
    return commitAs(operations, gate)
  }
  const createLane = (): GroupCommit =>
    createGroupCommit({
      clock,
      commit: async (operations, gate) => {
        const committed = await commit(operations, gate)
        if (committed.ok) availability.reached('commit')
        else availability.failed(committed.error, 'commit')
        return committed
      },
    })
  const ordered = createLane()
  const settles = store.settlesApart ? createLane() : ordered
  return {
    of: (kind) => (kind === 'settle' ? settles : ordered),
    idle: async () => {
      await settles.idle()
      await ordered.idle()
    },
  }
}
