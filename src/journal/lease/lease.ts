import type { JournalClock } from '../store/clock.ts'
import type { Store } from '../store/store.ts'
import type { ProcessIdentity } from './process-identity.ts'

/** Who wants to know how the lease fares. */
export interface LeaseWatch {
  /** What became of a try to renew: undefined, it worked. */
  readonly onRenewal: (error: unknown) => void
  /** Another instance took this one for dead; it goes on under a new number. */
  readonly onLost: () => void
}

export interface LeaseOptions extends LeaseWatch {
  readonly store: Store
  readonly clock: JournalClock
  readonly leaseMs: number
  readonly identity: ProcessIdentity
}

/** This instance's place among those that share the journal. */
export interface Lease {
  /** Its number, which owns what it begins. */
  instance(): number
  /** False when others may have taken it for dead, seen from here. */
  holds(): boolean
  /** Takes a new number where the old one is gone; resolves once that is sure. */
  renew(): Promise<void>
  /** Stops renewing and gives the place up. */
  end(): Promise<void>
}

/** This share of the lease is not counted on, since clocks and networks differ. */
const MARGIN = 0.2
/** What failed is tried again after this share of the usual time: without a lease nothing may be sent. */
const HASTE = 0.15

/** Registers this instance and renews its lease every third of it. Rejects as the driver does where it cannot register. */
export async function takeLease(options: LeaseOptions): Promise<Lease> {
  const { store, clock, leaseMs, identity, onRenewal, onLost } = options
  const { db } = store
  const everyMs = leaseMs / 3
  let instance = 0
  let heldUntilMs = -Infinity
  let ended = false
  let cancel = (): void => undefined
  let renewal: Promise<void> | undefined

  const register = async (): Promise<void> => {
    const startedMs = clock.nowMs()
    const { id } = await db
      .insertInto('journal_instances')
      .values(({ eb }) => ({ ...identity, lease_until: eb(store.nowMs(), '+', leaseMs) }))
      .returning('id')
      .executeTakeFirstOrThrow()
    instance = id
    heldUntilMs = startedMs + leaseMs * (1 - MARGIN)
  }
  const renewOnce = async (): Promise<void> => {
    const startedMs = clock.nowMs()
    const [result] = await db
      .updateTable('journal_instances')
      .set(({ eb }) => ({ lease_until: eb(store.nowMs(), '+', leaseMs) }))
      .where('id', '=', instance)
      .execute()
    if (result?.numUpdatedRows === 1n) {
      heldUntilMs = startedMs + leaseMs * (1 - MARGIN)
      return
    }
    heldUntilMs = -Infinity
    await register()
    onLost()
  }
  const renew = (): Promise<void> => (renewal ??= renewOnce().finally(() => (renewal = undefined)))
  const tick = (delayMs: number): void => {
    cancel = clock.after(delayMs, () => {
      void renew().then(
        () => done(undefined, everyMs),
        (error: unknown) => done(error, everyMs * HASTE),
      )
    })
  }
  const done = (error: unknown, delayMs: number): void => {
    onRenewal(error)
    if (!ended) tick(delayMs)
  }
  await register()
  tick(everyMs)
  return {
    instance: () => instance,
    holds: () => !ended && clock.nowMs() < heldUntilMs,
    renew,
    end: async () => {
      ended = true
      cancel()
      await renewal?.catch((error: unknown) => onRenewal(error))
      await db.deleteFrom('journal_instances').where('id', '=', instance).execute()
    },
  }
}
