import { type Kysely, sql } from 'kysely'

import type { WallClock } from '../clock.ts'
import type { GroupCommit } from './group-commit.ts'
import { dropGone, LEASES_MISSED, saveUncleanEnd, type UncleanEnd } from './instances.ts'
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
  readonly take: () => Promise<{ readonly lease: number; readonly batches: readonly number[] }>
}

interface InstanceRow extends ProcessIdentity {
  readonly id: number
  readonly leaseUntil: number
  readonly leaseMs: number
}

interface Sighting {
  readonly leaseUntil: number
  /** When this instance first observed `leaseUntil`, by the monotonic clock. */
  readonly sinceMs: number
}

/**
 * Creates the function that takes over batches with open records whose instance is dead. An instance is dead if its process no longer
 * exists, if it released its lease, or if it has not renewed its lease for too long. Resolves with the batches, oldest first; `after` has
 * every open record.
 *
 * This instance measures with its own monotonic clock how long a lease stays unchanged, and compares times that other instances wrote only
 * for equality. A wall clock that is set forward therefore ends no lease, and a wall clock that is set back extends no lease.
 */
export function createTakeOver({
  store,
  clock,
  processes: { own, look },
  take,
}: TakeOverOptions): (instance: number) => Promise<readonly TakenOver[]> {
  let sightings = new Map<number, Sighting>()
  /** Marks dead instances. Returns true if there are batches to take over. */
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
        const sighting = last.get(id)
        const sinceMs = sighting?.leaseUntil === leaseUntil ? sighting.sinceMs : nowMs
        sightings.set(id, { leaseUntil, sinceMs })
        if (isGone(one, own, look)) gone.killed.push(one)
        else if (nowMs - sinceMs >= leaseMs * LEASES_MISSED) gone.lost.push(one)
      }
      // Takes nothing over if other instances declared this instance dead, because its batches would be orphans again.
      if (!all.some(({ id }) => id === instance)) return false
      await dropGone(db, store, own, look)
      for (const kind of ['killed', 'lost'] as const) {
        if (gone[kind].length > 0) await saveUncleanEnd(db, store, kind)
        for (const one of gone[kind]) {
          const change =
            kind === 'lost' ? sql`update journal_instances set lost = 1` : sql`delete from journal_instances`
          // The condition on `lease_until` spares an instance that has renewed its lease since the row was read.
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
    // Reads the records after the commit, so that other instances can commit meanwhile. If this read fails, `findAbandoned` finds the batches.
    return readOpen(store.db, lease, batches)
  }
}

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
 * Creates `findAbandoned`. It returns a batch that was unattended at an earlier call too, once all journal calls made before that earlier
 * call have ended.
 */
export function createFindAbandoned(
  { db }: Store,
  calls: Pick<GroupCommit, 'submitted' | 'areEnded'>,
): (instance: number, isAttended: (batch: number) => boolean) => Promise<readonly TakenOver[]> {
  /** Maps each unattended batch to the number of journal calls that had been made when the batch was first seen. */
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

export async function askForBatch(db: Kysely<JournalTables>, batch: number, instance: number): Promise<void> {
  await sql`update journal_batches set asked_by = ${instance} where id = ${batch}`.execute(db)
}

export function handOverBatches(
  { exclusively }: Pick<Store, 'exclusively'>,
  batches: readonly number[],
  instance: number,
): Promise<readonly number[]> {
  const asked = new Set(batches)
  return exclusively(async (db) => {
    const { rows } = await sql<{ id: number }>`select id from journal_batches
      where instance = ${instance} and open > 0 and asked_by <> ${instance}
        and asked_by in (select id from journal_instances where lost = 0)`.execute(db)
    const given = rows.map(({ id }) => id).filter((id) => asked.has(id))
    for (const id of given)
      await sql`update journal_batches set instance = asked_by, asked_by = null where id = ${id}`.execute(db)
    return given
  })
}
