import { sql } from 'kysely'

import type { WallClock } from '../clock.ts'
import type { AdapterError } from '../errors.ts'
import { dropReturned } from './instances.ts'
import { processColumns, type ProcessIdentity, processOf } from './process-identity.ts'
import type { Store } from './store.ts'
import { damagedJournal } from './store-error.ts'

interface LeaseOptions {
  readonly store: Store
  readonly clock: WallClock
  readonly leaseMs: number
  readonly identity: ProcessIdentity
  /** Called with the error of a failed renewal, or with undefined. */
  readonly onRenewal: (error: unknown) => void
  /** The lease has expired for other instances; this one continues under a new number. */
  readonly onLost: () => void
}

/** This instance's place among those that share the journal. */
interface Lease {
  /** Number of the instance, which owns the batches that it begins. */
  instance(): number
  /**
   * True while no other instance can have taken over: the last renewal was sent less than the lease, minus its margin, ago by
   * the monotonic clock, and the wall clock agrees. Two clock reads; meant to be asked before each POST.
   */
  holds(): boolean
  /** Takes a new number where the old one is gone; resolves once that is sure. */
  renew(): Promise<void>
  /** Stops renewing and gives the place up. */
  end(): Promise<void>
}

/** This share of the lease is not counted on, since clocks and networks differ. */
const MARGIN = 0.2
/**
 * The two clocks may differ by this share of the lease since the last renewal. A larger difference is a machine that was
 * suspended, where the monotonic clock stands, or a wall clock that was set: neither says how much time has passed.
 */
const MAX_DRIFT = 0.05
/** What failed is tried again after this share of the usual time: without a lease nothing may be sent. */
const HASTE = 0.15

/** Registers this instance and renews its lease every third of it. Rejects as the driver does where it cannot register. */
export async function takeLease(options: LeaseOptions): Promise<Lease> {
  const { store, clock, leaseMs, identity, onRenewal, onLost } = options
  const { db } = store
  const everyMs = leaseMs / 3
  const own = processOf(identity)
  let instance = 0
  /** When the last renewal that worked was sent; undefined: the place was lost. */
  let sent: { readonly monotonicMs: number; readonly wallMs: number } | undefined
  /** What was noticed holds for this process. */
  let damage: AdapterError | undefined
  let ended = false
  let cancel = (): void => undefined
  let renewal: Promise<void> | undefined

  const readClocks = (): typeof sent => ({ monotonicMs: clock.nowMs(), wallMs: clock.wallMs() })
  const register = async (): Promise<void> => {
    const before = readClocks()
    instance = await db.transaction().execute(async (transaction) => {
      const { id } = await transaction
        .insertInto('journal_instances')
        .values({ ...identity, lease_until: sql`${store.nowMs()} + ${sql.lit(leaseMs)}`, lease_ms: leaseMs })
        .returning('id')
        .executeTakeFirstOrThrow()
      await dropReturned(transaction, identity)
      return id
    })
    sent = before
  }
  const renewOnce = async (): Promise<void> => {
    if (damage !== undefined) throw damage
    const before = readClocks()
    const until = sql`${store.nowMs()} + ${sql.lit(leaseMs)}`
    // Others watch this value change: it is never the one before, whatever the wall clock does.
    const { numAffectedRows } = await sql`update journal_instances
      set lease_until = case when lease_until = ${until} then ${until} + 1 else ${until} end
      where id = ${instance} and lost = 0 and ${sql.raw(processColumns)} = ${own}`.execute(db)
    if (numAffectedRows === 1n) {
      sent = before
      return
    }
    sent = undefined
    const { rows: others } =
      await sql`select 1 from journal_instances where id = ${instance} and ${sql.raw(processColumns)} <> ${own}`.execute(db) // prettier-ignore
    // Numbers are given once: the database is an older copy, which others may have counted up since.
    if (others.length > 0) {
      damage = damagedJournal(
        'it went back while it was in use, and another process has the number of this one',
      )
      throw damage
    }
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
    holds: () => {
      if (ended || sent === undefined) return false
      const elapsedMs = clock.nowMs() - sent.monotonicMs
      const driftMs = clock.wallMs() - sent.wallMs - elapsedMs
      return elapsedMs < leaseMs * (1 - MARGIN) && Math.abs(driftMs) <= leaseMs * MAX_DRIFT
    },
    renew,
    end: async () => {
      ended = true
      cancel()
      await renewal?.catch((error: unknown) => onRenewal(error))
      await sql`delete from journal_instances where id = ${instance} and ${sql.raw(processColumns)} = ${own}`.execute(
        db,
      )
    },
  }
}
