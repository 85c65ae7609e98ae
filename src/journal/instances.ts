import { type Kysely, type RawBuilder, sql } from 'kysely'

import { isGone, type ProcessIdentity, type Processes } from './process-identity.ts'
import { readMeta, writeMeta } from './schema.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './schema.ts'

/** An instance that others must count with. */
interface LiveInstance {
  /** Number of its lease. */
  readonly instance: number
  readonly host: string
  readonly pid: number
}

/** A lease that was not renewed for this many times its length has ended. Its holder counts on less than one. */
export const LEASES_MISSED = 1.2

type Now = Pick<Store, 'nowMs'>

/** Instances whose lease has not ended by the time of the database, with the margin that is left to them before others take over. */
export async function readLiveInstances(
  db: Kysely<JournalTables>,
  database: Now,
): Promise<readonly LiveInstance[]> {
  const { rows } = await sql<LiveInstance>`select id as instance, host, pid from journal_instances
    where ${isLive(database)} order by id`.execute(db)
  return rows
}

/** True for the row of a live instance; SQL. */
export const isLive = ({ nowMs }: Now): RawBuilder<boolean> =>
  sql<boolean>`lost = 0 and lease_until + lease_ms * ${sql.lit(LEASES_MISSED - 1)} > ${nowMs()}`

/** How an instance ended without giving its lease up. `killed`: its process is gone. `lost`: it did not renew its lease and may still run. */
export type UncleanEnd = 'killed' | 'lost'

const endOf = (how: UncleanEnd): string => `unclean end: ${how}`

/** Notes that an instance was found gone just now, in the time of the database. */
export async function noteUncleanEnd(db: Kysely<JournalTables>, store: Now, how: UncleanEnd): Promise<void> {
  const { rows } = await sql<{ now: number }>`select ${store.nowMs()} as now`.execute(db)
  await writeMeta(db, endOf(how), String(rows[0]?.now ?? 0))
}

/** When an instance was last found gone; until then it may have served without the journal. Undefined: none was. */
export async function readUncleanEnd(
  db: Kysely<JournalTables>,
  how: UncleanEnd,
): Promise<number | undefined> {
  const text = await readMeta(db, endOf(how))
  return text === undefined ? undefined : Number(text)
}

/** An instance whose lease ended without a clean stop and that may still run: cut off from the journal, it serves the stages that it kept. */
export interface LostInstance extends LiveInstance {
  /** The end of its lease, by the clock of the database. */
  readonly leaseUntilMs: number
}

/** A lost instance with what identifies its process. */
interface LostProcess extends ProcessIdentity, LostInstance {}

/** Removes the lost instances that this process was: it has a lease again, so others count with it. */
export async function dropReturned(
  db: Kysely<JournalTables>,
  { host, boot, pid, started }: ProcessIdentity,
): Promise<void> {
  await sql`delete from journal_instances where lost = 1
    and host = ${host} and boot = ${boot} and pid = ${pid} and started = ${started}`.execute(db)
}

/** Removes the lost instances whose process is gone by now; until then they may have served without the journal. */
export async function dropGone(
  db: Kysely<JournalTables>,
  database: Now,
  own: ProcessIdentity,
  look?: Processes['look'],
): Promise<void> {
  const gone = (await readLost(db, database)).filter((lost) => isGone(lost, own, look))
  if (gone.length === 0) return
  // Before the rows of instances, as all do: two transactions may find the same ones.
  await noteUncleanEnd(db, database, 'killed')
  for (const { instance } of gone) await drop(db, instance)
}

/** Removes a lost instance; until now it may have served without the journal. Undefined: it is not lost. */
export async function dismissLost(
  db: Kysely<JournalTables>,
  database: Now,
  instance: number,
): Promise<LostInstance | undefined> {
  const found = (await readLost(db, database)).find((lost) => lost.instance === instance)
  if (found === undefined) return undefined
  await noteUncleanEnd(db, database, 'killed')
  await drop(db, instance)
  return toLostInstance(found)
}

/** The instances that are lost, in the order of their numbers; those whose process is gone are left out. */
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

/** Those that others took over from, and those whose lease has ended unnoticed: without another instance there is none to notice it. */
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
