import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

import { type Kysely, type RawBuilder, sql } from 'kysely'

import { readMeta, writeMeta } from './schema.ts'
import type { Store } from './store.ts'
import type { JournalTables } from './schema.ts'

/** The identity of a process, as far as the machine provides it. */
export interface ProcessIdentity {
  readonly host: string
  /** The machine's start and the namespace of process numbers; empty where there is no /proc. */
  readonly boot: string
  readonly pid: number
  /** When the process started, in ticks since the machine did; empty where there is no /proc. */
  readonly started: string
}

/** One text for each process; `processColumns` have the same. */
export const processOf = ({ boot, pid, started }: Omit<ProcessIdentity, 'host'>): string =>
  `${boot} ${pid} ${started}`

/** What tells the process of an instance from others; SQL. */
export const processColumns = "boot || ' ' || cast(pid as text) || ' ' || started"

/** Reads who this process is. */
export function ownIdentity(): ProcessIdentity {
  return { host: hostname(), boot: readBoot(), pid: process.pid, started: lookAt(process.pid).started ?? '' }
}

/** The machine's information about a process number. */
export interface ProcessSight {
  /** A process has the number. */
  readonly alive: boolean
  /** When that process started; undefined where it cannot be read, empty for one that has ended and is not buried yet. */
  readonly started: string | undefined
}

/** A process and the machine that it runs on. */
export interface Processes {
  readonly own: ProcessIdentity
  readonly look: (pid: number) => ProcessSight
}

/** This process, as the operating system knows it. */
export const ownProcesses = (): Processes => ({ own: ownIdentity(), look: lookAt })

/**
 * True where it is sure that the process is gone: it ran here, and its number is free or belongs to another by now. False
 * for one of another machine or container, or one that is hidden from this user: its lease tells.
 */
export function isGone(
  process: ProcessIdentity,
  own: ProcessIdentity,
  look: Processes['look'] = lookAt,
): boolean {
  if (process.host !== own.host || process.boot !== own.boot) return false
  const sight = look(process.pid)
  if (!sight.alive) return true
  if (process.started === '' || sight.started === undefined) return false
  return sight.started !== process.started
}

function lookAt(pid: number): ProcessSight {
  return { alive: isAlive(pid), started: readStarted(pid) }
}

/** Process numbers of two containers are alike: the namespace belongs to the name of the machine. */
function readBoot(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/** Field 22 of /proc/pid/stat (proc(5)); the second field may hold spaces and ends with the last parenthesis. */
function readStarted(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie: it ended, and its parent has not asked for it.
    return fields[0] === 'Z' ? '' : fields[19]
  } catch {
    // There is no /proc, or it shows no processes of others (proc(5), hidepid).
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

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
