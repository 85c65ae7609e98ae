import { type Kysely, type RawBuilder, sql } from 'kysely'

import { isGone, type ProcessIdentity, type Processes } from './process-identity.ts'
import { readMeta, writeMeta } from './schema.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './schema.ts'

/** An instance whose lease may still be valid. */
interface LiveInstance {
  readonly instance: number
  readonly host: string
  readonly pid: number
}

/** A lease counts as ended if it was not renewed for its length times this factor. The holder itself relies on less than one length. */
export const LEASES_MISSED = 1.2

type Now = Pick<Store, 'nowMs'>

/** Returns the instances whose lease, extended by `LEASES_MISSED`, has not ended by the clock of the database. */
export async function readLiveInstances(
  db: Kysely<JournalTables>,
  database: Now,
): Promise<readonly LiveInstance[]> {
  const { rows } = await sql<LiveInstance>`select id as instance, host, pid from journal_instances
    where ${isLive(database)} order by id`.execute(db)
  return rows
}

export const isLive = ({ nowMs }: Now): RawBuilder<boolean> =>
  sql<boolean>`lost = 0 and lease_until + lease_ms * ${sql.lit(LEASES_MISSED - 1)} > ${nowMs()}`

/** `killed` if the instance's process is dead. `lost` if the instance did not renew its lease and may still be running. */
export type UncleanEnd = 'killed' | 'lost'

const endOf = (how: UncleanEnd): string => `unclean end: ${how}`

/** Records the current time of the database as the time when a dead instance was found. */
export async function saveUncleanEnd(db: Kysely<JournalTables>, store: Now, how: UncleanEnd): Promise<void> {
  const { rows } = await sql<{ now: number }>`select ${store.nowMs()} as now`.execute(db)
  await writeMeta(db, endOf(how), String(rows[0]?.now ?? 0))
}

/**
 * Returns the last time at which a dead instance was found, in milliseconds since the epoch, or `undefined` if none was found. Until that
 * time the instance may have served requests without the journal.
 */
export async function readUncleanEnd(
  db: Kysely<JournalTables>,
  how: UncleanEnd,
): Promise<number | undefined> {
  const text = await readMeta(db, endOf(how))
  return text === undefined ? undefined : Number(text)
}

/**
 * An instance whose lease ended without a clean stop. The instance may still be running, and then serves requests by the stages that it
 * read last.
 */
export interface LostInstance extends LiveInstance {
  /** The end of its lease by the clock of the database, in milliseconds since the epoch. */
  readonly leaseUntilMs: number
}

interface LostProcess extends ProcessIdentity, LostInstance {}

/** Removes this process from the lost instances, because the process has a lease again and is visible to other instances. */
export async function dropReturned(
  db: Kysely<JournalTables>,
  { host, boot, pid, started }: ProcessIdentity,
): Promise<void> {
  await sql`delete from journal_instances where lost = 1
    and host = ${host} and boot = ${boot} and pid = ${pid} and started = ${started}`.execute(db)
}

/**
 * Removes lost instances whose process has died. Saves the current time as their end, because they may have served requests without the
 * journal until now.
 */
export async function dropGone(
  db: Kysely<JournalTables>,
  database: Now,
  own: ProcessIdentity,
  look?: Processes['look'],
): Promise<void> {
  const gone = (await readLost(db, database)).filter((lost) => isGone(lost, own, look))
  if (gone.length === 0) return
  // Saves the unclean end before rows of instances are deleted. All code uses this order, so that two transactions that find the same
  // instances do not deadlock.
  await saveUncleanEnd(db, database, 'killed')
  for (const { instance } of gone) await drop(db, instance)
}

/** Removes and returns a lost instance, or returns `undefined` if the instance is not lost. Saves the current time as its end, as `dropGone` does. */
export async function dismissLost(
  db: Kysely<JournalTables>,
  database: Now,
  instance: number,
): Promise<LostInstance | undefined> {
  const found = (await readLost(db, database)).find((lost) => lost.instance === instance)
  if (found === undefined) return undefined
  await saveUncleanEnd(db, database, 'killed')
  await drop(db, instance)
  return toLostInstance(found)
}

/** Returns the lost instances ordered by number, without instances whose process has died. */
export async function readLostInstances(
  db: Kysely<JournalTables>,
  database: Now,
  own: ProcessIdentity,
): Promise<readonly LostInstance[]> {
  const all = await readLost(db, database)
  return all.filter((lost) => !isGone(lost, own)).map(toLostInstance)
}

async function drop(db: Kysely<JournalTables>, instance: number): Promise<void> {
  await sql`delete from journal_instances where id = ${instance}`.execute(db)
}

/** Returns the instances marked as lost, and the instances whose lease ended while no other instance was running to mark them. */
async function readLost(db: Kysely<JournalTables>, database: Now): Promise<readonly LostProcess[]> {
  const { rows } = await sql<LostProcess>`
    select id as instance, host, boot, pid, started, lease_until as "leaseUntilMs" from journal_instances
    where not (${isLive(database)}) order by id`.execute(db)
  return rows
}

const toLostInstance = ({ instance, host, pid, leaseUntilMs }: LostProcess): LostInstance => ({
  instance,
  host,
  pid,
  leaseUntilMs,
})
