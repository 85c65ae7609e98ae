import { type Kysely, sql } from 'kysely'

import type { WallClock } from '../clock.ts'
import type { GroupCommit } from './group-commit.ts'
import { dropGone, LEASES_MISSED, noteUncleanEnd, type UncleanEnd } from './instances.ts'
import type { TakenOver } from './journal.ts'
import { isGone, type Processes, type ProcessIdentity } from './process-identity.ts'
import { readOlderOfBatch } from './read-records.ts'
import { isOrphaned } from './sql.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './schema.ts'

interface TakeOverOptions {
  readonly store: Store
  readonly clock: WallClock
  readonly processes: Processes
  /** Takes the batches, in a commit. */
  readonly take: () => Promise<{ readonly lease: number; readonly batches: readonly number[] }>
}

/** The row of an instance. */
interface InstanceRow extends ProcessIdentity {
  readonly id: number
  readonly leaseUntil: number
  readonly leaseMs: number
}

/** An instance as it was seen last. */
interface Sighting {
  readonly leaseUntil: number
  /** By the monotonic clock, when this value was seen first. */
  readonly sinceMs: number
}

/**
 * Creates what makes an instance the owner of the batches with open records whose instance is gone: its process is not there
 * any longer, it has given up its place, or it was seen not to renew its lease for longer than that takes. Resolves with them,
 * oldest first; `after` has every open record.
 *
 * The time that an unchanged lease is watched is measured by this instance's own monotonic clock. Times that others wrote are
 * only compared for equality: a wall clock that is set forward ends no lease, and one that is set back prolongs none.
 */
export function createTakeOver({
  store,
  clock,
  processes: { own, look },
  take,
}: TakeOverOptions): (instance: number) => Promise<readonly TakenOver[]> {
  let sightings = new Map<number, Sighting>()
  /** Notes who is gone. True: they have left batches. */
  const watch = (instance: number): Promise<boolean> =>
    store.exclusively(async (db) => {
      const { rows: all } = await sql<InstanceRow>`select id, host, boot, pid, started,
        lease_until as "leaseUntil", lease_ms as "leaseMs" from journal_instances where lost = 0 order by id`.execute(
        db,
      )
      const nowMs = clock.nowMs()
      const last = sightings
      sightings = new Map()
      const gone: Record<UncleanEnd, InstanceRow[]> = { killed: [], lost: [] }
      for (const one of all) {
        const { id, leaseUntil, leaseMs } = one
        if (id === instance) continue
        const seen = last.get(id)
        const sinceMs = seen?.leaseUntil === leaseUntil ? seen.sinceMs : nowMs
        sightings.set(id, { leaseUntil, sinceMs })
        if (isGone(one, own, look)) gone.killed.push(one)
        else if (nowMs - sinceMs >= leaseMs * LEASES_MISSED) gone.lost.push(one)
      }
      // The lease has expired: batches taken now would have no owner.
      if (!all.some(({ id }) => id === instance)) return false
      await dropGone(db, store, own, look)
      for (const kind of ['killed', 'lost'] as const) {
        if (gone[kind].length > 0) await noteUncleanEnd(db, store, kind)
        for (const one of gone[kind]) {
          const change =
            kind === 'lost' ? sql`update journal_instances set lost = 1` : sql`delete from journal_instances`
          // It may have renewed its lease since it was read.
          await sql`${change} where id = ${one.id} and lease_until = ${one.leaseUntil}`.execute(db)
        }
      }
      const { rows } = await sql`select 1 from journal_batches
        where ${sql.raw(isOrphaned(String(instance)))} limit 1`.execute(db)
      return rows.length > 0
    })
  return async (instance) => {
    if (!(await watch(instance))) return []
    const { lease, batches } = await take()
    // Their records are read once others may commit again. What is not read then is found as abandoned.
    return readOpen(store.db, lease, batches)
  }
}

/** The open records of batches that `instance` owns, oldest batch first. */
async function readOpen(
  db: Kysely<JournalTables>,
  instance: number,
  ids: readonly number[],
): Promise<readonly TakenOver[]> {
  const batches: TakenOver[] = []
  for (const batch of [...ids].sort((one, other) => one - other))
    batches.push({ batch, lease: instance, after: await readOlderOfBatch(db, batch) })
  return batches
}

/**
 * Creates what finds the batches of this instance that nothing works on, as `Journal.findAbandoned`: those that were unattended before, and
 * of which no call that was made until then may still lead to work.
 */
export function createFindAbandoned(
  { db }: Store,
  calls: Pick<GroupCommit, 'submitted' | 'areEnded'>,
): (instance: number, isAttended: (batch: number) => boolean) => Promise<readonly TakenOver[]> {
  /** Unattended batches with the number of calls that were made before they were seen. */
  let candidates = new Map<number, number>()
  return async (instance, isAttended) => {
    const { rows } = await sql<{ id: number }>`select id from journal_batches
      where instance = ${instance} and open > 0`.execute(db)
    const before = candidates
    candidates = new Map()
    const abandoned: number[] = []
    for (const { id } of rows) {
      if (isAttended(id)) continue
      const made = before.get(id)
      if (made !== undefined && calls.areEnded(made)) abandoned.push(id)
      candidates.set(id, made ?? calls.submitted())
    }
    return readOpen(db, instance, abandoned)
  }
}

/** Asks the instance that has a batch for it. */
export async function askForBatch(db: Kysely<JournalTables>, batch: number, instance: number): Promise<void> {
  await sql`update journal_batches set asked_by = ${instance} where id = ${batch}`.execute(db)
}

/** Makes live instances that asked for one of these batches of `instance` its owners; gives the batches that went to others. */
export function handOverBatches(
  { exclusively }: Pick<Store, 'exclusively'>,
  batches: readonly number[],
  instance: number,
): Promise<readonly number[]> {
  const held = new Set(batches)
  return exclusively(async (db) => {
    const { rows } = await sql<{ id: number }>`select id from journal_batches
      where instance = ${instance} and open > 0 and asked_by <> ${instance}
        and asked_by in (select id from journal_instances where lost = 0)`.execute(db)
    const given = rows.map(({ id }) => id).filter((id) => held.has(id))
    for (const id of given)
      await sql`update journal_batches set instance = asked_by, asked_by = null where id = ${id}`.execute(db)
    return given
  })
}
