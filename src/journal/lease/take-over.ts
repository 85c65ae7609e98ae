import { type Kysely, sql } from 'kysely'

import type { TakenOver } from '../journal.ts'
import { readOlderOfBatch } from '../older-open.ts'
import { changeOfBatch } from '../schema/row-sums.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { WallClock } from '../../clock.ts'
import type { Store } from '../store/store.ts'
import { LEASES_MISSED } from './live-instances.ts'
import { dropGone, noteLost } from './lost-instances.ts'
import { isGone, type ProcessIdentity } from './process-identity.ts'
import { noteUncleanEnd, type UncleanEnd } from './unclean-ends.ts'

export interface TakeOverOptions {
  readonly store: Store
  readonly clock: WallClock
  /** Of this instance; for others that do not say theirs. */
  readonly leaseMs: number
  readonly own: ProcessIdentity
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
export function createTakeOver(
  options: TakeOverOptions,
): (instance: number) => Promise<readonly TakenOver[]> {
  const { store, clock, leaseMs, own } = options
  let sightings = new Map<number, Sighting>()
  return (instance) =>
    store.exclusively(async (db) => {
      const all = await db
        .selectFrom('journal_instances')
        .select(['id', 'host', 'boot', 'pid', 'started', 'lease_until as leaseUntil', 'lease_ms as leaseMs'])
        .execute()
      const nowMs = clock.nowMs()
      const last = sightings
      sightings = new Map()
      const gone: { readonly one: (typeof all)[number]; readonly how: UncleanEnd }[] = []
      for (const one of all) {
        const { id, leaseUntil } = one
        if (id === instance) continue
        const seen = last.get(id)
        const sinceMs = seen?.leaseUntil === leaseUntil ? seen.sinceMs : nowMs
        sightings.set(id, { leaseUntil, sinceMs })
        if (isGone(one, own)) gone.push({ one, how: 'killed' })
        else if (nowMs - sinceMs >= (one.leaseMs ?? leaseMs) * LEASES_MISSED) gone.push({ one, how: 'lost' })
      }
      // The lease has expired: batches taken now would have no owner.
      if (!all.some(({ id }) => id === instance)) return []
      await dropGone(db, store, own)
      for (const kind of ['killed', 'lost'] as const) {
        const ofKind = gone.filter(({ how }) => how === kind)
        if (ofKind.length > 0) await noteUncleanEnd(db, store, kind)
        for (const { one } of ofKind.sort((left, right) => left.one.id - right.one.id)) {
          // It may have renewed its lease since it was read.
          const unchanged = db.deleteFrom('journal_instances').where('id', '=', one.id)
          const [deleted] = await unchanged.where('lease_until', '=', one.leaseUntil).execute()
          if (kind === 'lost' && deleted?.numDeletedRows === 1n) await noteLost(db, one)
        }
      }
      const taken = await db
        .updateTable('journal_batches')
        .set({ owner: instance, sum: sql.raw(changeOfBatch({ owner: String(instance) })) })
        .where('open', '>', 0)
        .where('owner', '<>', instance)
        .where('owner', 'not in', (eb) => eb.selectFrom('journal_instances').select('id'))
        .returning('id')
        .execute()
      return readOpen(
        db,
        instance,
        taken.map(({ id }) => id),
      )
    })
}

/** The batches of `instance` that have open records. */
export async function readOwnOpen(db: Kysely<JournalTables>, instance: number): Promise<readonly number[]> {
  const rows = await db
    .selectFrom('journal_batches')
    .select('id')
    .where('owner', '=', instance)
    .where('open', '>', 0)
    .execute()
  return rows.map(({ id }) => id)
}

/** The open records of batches that `instance` owns, oldest batch first. */
export async function readOpen(
  db: Kysely<JournalTables>,
  instance: number,
  ids: readonly number[],
): Promise<readonly TakenOver[]> {
  const batches: TakenOver[] = []
  for (const batch of [...ids].sort((one, other) => one - other)) {
    batches.push({ batch, lease: instance, after: await readOlderOfBatch(db, batch) })
  }
  return batches
}
