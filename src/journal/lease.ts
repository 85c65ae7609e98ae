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
  /** Called after each renewal, with the error of the renewal, or with `undefined` if the renewal succeeded. */
  readonly onRenewal: (error: unknown) => void
  /** Called when other instances declared this instance dead, and this instance continues under a new number. */
  readonly onLost: () => void
}

interface Lease {
  instance(): number
  /**
   * Returns true while no other instance can have taken over. This is certain for the length of the lease, less `MARGIN`, after the last
   * renewal was sent, as long as the monotonic clock and the wall clock agree. Reads only two clocks, so that `holds` can be called before
   * each POST.
   */
  holds(): boolean
  /**
   * Returns the time from which this instance has been the only live one, by the monotonic clock, or `undefined` while another instance may
   * be alive. Each renewal looks for other instances, so a new instance is noticed within a third of the lease, and always before the lease
   * ends.
   */
  aloneSinceMs(): number | undefined
  /**
   * Renews the lease. The number is new if other instances declared this instance dead. Resolves once the database has stored the renewal.
   */
  renew(): Promise<void>
  end(): Promise<void>
}

/** The fraction of the lease that the instance does not rely on, because clocks and network delays differ. */
const MARGIN = 0.2
/**
 * Maximum difference between the two clocks since the last renewal, as a fraction of the lease. A larger difference means that the machine
 * was suspended, which stops the monotonic clock, or that the wall clock was set. In both cases the elapsed time is unknown.
 */
const MAX_DRIFT = 0.05
/**
 * The delay before a retry of a failed renewal, as a fraction of the usual interval. The delay is short because the instance sends nothing
 * without a lease.
 */
const RETRY_SHARE = 0.15

/**
 * Registers this instance, and renews its lease each time a third of the lease has passed. Rejects with the driver's errors if registration
 * fails.
 */
export async function takeLease(options: LeaseOptions): Promise<Lease> {
  const { store, clock, leaseMs, identity, onRenewal, onLost } = options
  const { db } = store
  const everyMs = leaseMs / 3
  const own = processOf(identity)
  let instance = 0
  /**
   * The time at which the registration or the last successful renewal was sent. `undefined` before the registration, and while other
   * instances have declared this instance dead.
   */
  let sent: { readonly monotonicMs: number; readonly wallMs: number } | undefined
  /**
   * The time since which every renewal has found no other instance. `undefined` if the last renewal found another instance, or if there was
   * no renewal since the registration.
   */
  let foundAloneMs: number | undefined
  /** The damage that a renewal found. Every later renewal reports it again, until the process ends. */
  let damage: AdapterError | undefined
  let ended = false
  let cancel = (): void => undefined
  let renewal: Promise<void> | undefined

  const readClocks = (): typeof sent => ({ monotonicMs: clock.nowMs(), wallMs: clock.wallMs() })
  const holds = (): boolean => {
    if (ended || sent === undefined) return false
    const elapsedMs = clock.nowMs() - sent.monotonicMs
    const driftMs = clock.wallMs() - sent.wallMs - elapsedMs
    return elapsedMs < leaseMs * (1 - MARGIN) && Math.abs(driftMs) <= leaseMs * MAX_DRIFT
  }
  const aloneSinceMs = (): number | undefined => (holds() ? foundAloneMs : undefined)
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
    foundAloneMs = undefined
  }
  const renewOnce = async (): Promise<void> => {
    if (damage !== undefined) throw damage
    const before = readClocks()
    const until = sql`${store.nowMs()} + ${sql.lit(leaseMs)}`
    // Other instances watch this value for changes, so the new value must differ from the previous value even if the wall clock is set back.
    const { rows: renewed } = await sql<{ other: number | null }>`update journal_instances
      set lease_until = case when lease_until = ${until} then ${until} + 1 else ${until} end
      where id = ${instance} and lost = 0 and ${sql.raw(processColumns)} = ${own}
      returning (select 1 from journal_instances one where one.lost = 0 and one.id <> ${instance} limit 1) as other`.execute(
      db,
    )
    if (renewed[0] !== undefined) {
      // If the lease did not hold, another instance may have started and stopped meanwhile, so the time without other instances begins
      // anew.
      foundAloneMs = renewed[0].other === null ? (aloneSinceMs() ?? clock.nowMs()) : undefined
      sent = before
      return
    }
    sent = undefined
    const { rows: others } =
      await sql`select 1 from journal_instances where id = ${instance} and ${sql.raw(processColumns)} <> ${own}`.execute(db) // prettier-ignore
    // If another process has the number of this instance, the database is an older copy, because a journal assigns each number once. The
    // commit counts may not show the damage, because other instances may have raised them since.
    if (others.length > 0) {
      damage = damagedJournal(
        'it was replaced by an older copy while it was in use, and another process has the instance number of this process',
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
        (error: unknown) => done(error, everyMs * RETRY_SHARE),
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
    holds,
    aloneSinceMs,
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
