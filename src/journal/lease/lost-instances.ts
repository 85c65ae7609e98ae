import { type Kysely, sql } from 'kysely'

import type { JournalDatabase } from '../journal-database.ts'
import { writeMeta } from '../schema/migrate.ts'
import type { JournalTables } from '../schema/tables.ts'
import { isLive, type LiveInstance } from './live-instances.ts'
import { isGone, type ProcessIdentity } from './process-identity.ts'
import { noteUncleanEnd } from './unclean-ends.ts'

/** An instance whose lease ended without a clean stop and that may still run: cut off from the journal, it serves the stages that it kept. */
export interface LostInstance extends LiveInstance {
  /** The end of its lease, by the clock of the database. */
  readonly leaseUntilMs: number
}

/** A lost instance with what identifies its process. */
interface LostProcess extends ProcessIdentity {
  readonly id: number
  readonly leaseUntil: number
}

/** The name of a row in `journal_meta` with a lost instance; JSON. */
const nameOf = (instance: number | ''): string => `lost: ${instance}`
const lostRows = 'lost: %'

/** Keeps an instance that others take over from although it may still run. */
export async function noteLost(db: Kysely<JournalTables>, lost: LostProcess): Promise<void> {
  const { id, host, boot, pid, started, leaseUntil } = lost
  await writeMeta(
    db,
    nameOf(id),
    JSON.stringify({ id, host, boot, pid, started, leaseUntil } satisfies LostProcess),
  )
}

/** Drops the lost instances that this process was: it has a lease again, so others count with it. */
export async function dropReturned(db: Kysely<JournalTables>, own: ProcessIdentity): Promise<void> {
  for (const lost of await readNoted(db)) if (isSame(lost, own)) await dropLost(db, lost.id)
}

/** Removes the lost instances whose process is gone by now; until then they may have served without the journal. */
export async function dropGone(
  db: Kysely<JournalTables>,
  database: Pick<JournalDatabase, 'nowMs'>,
  own: ProcessIdentity,
): Promise<void> {
  const gone = (await readAll(db, database)).filter((lost) => isGone(lost, own))
  if (gone.length === 0) return
  // Before the rows of instances, as all do: two transactions may find the same ones.
  await noteUncleanEnd(db, database, 'killed')
  for (const { id } of gone) await dropLost(db, id)
}

/** Removes a lost instance; until now it may have served without the journal. Undefined: it is not lost. */
export async function dismissLost(
  db: Kysely<JournalTables>,
  database: Pick<JournalDatabase, 'nowMs'>,
  instance: number,
): Promise<LostInstance | undefined> {
  const found = (await readAll(db, database)).find(({ id }) => id === instance)
  if (found === undefined) return undefined
  await noteUncleanEnd(db, database, 'killed')
  await dropLost(db, instance)
  return toLostInstance(found)
}

/** The instances that are lost, in the order of their numbers; those whose process is gone are left out. */
export async function readLostInstances(
  db: Kysely<JournalTables>,
  database: Pick<JournalDatabase, 'nowMs'>,
  own: ProcessIdentity,
): Promise<readonly LostInstance[]> {
  const all = await readAll(db, database)
  return all.filter((lost) => !isGone(lost, own)).map(toLostInstance)
}

async function dropLost(db: Kysely<JournalTables>, instance: number): Promise<void> {
  await db.deleteFrom('journal_meta').where('name', '=', nameOf(instance)).execute()
  await db.deleteFrom('journal_instances').where('id', '=', instance).execute()
}

/** Those that were noted, and those whose lease has ended unnoticed: without another instance there is none to note it. */
async function readAll(
  db: Kysely<JournalTables>,
  database: Pick<JournalDatabase, 'nowMs'>,
): Promise<readonly LostProcess[]> {
  const expired = await db
    .selectFrom('journal_instances')
    .select(['id', 'host', 'boot', 'pid', 'started', 'lease_until as leaseUntil'])
    .where(sql<boolean>`not (${isLive(database)})`)
    .execute()
  return [...(await readNoted(db)), ...expired].sort((one, other) => one.id - other.id)
}

async function readNoted(db: Kysely<JournalTables>): Promise<readonly LostProcess[]> {
  const rows = await db
    .selectFrom('journal_meta')
    .select(['name', 'value'])
    .where('name', 'like', lostRows)
    .execute()
  return rows.map(({ name, value }) => ({ ...readProcess(value), id: Number(name.slice(nameOf('').length)) }))
}

/** A damaged row still says that an instance is lost: its process is never found again, so an operator has to dismiss it. */
function readProcess(text: string): Omit<LostProcess, 'id'> {
  const kept = parse(text)
  const { host, boot, pid, started, leaseUntil } = { ...kept } as Readonly<Record<string, unknown>>
  const isWhole =
    typeof host === 'string' &&
    typeof boot === 'string' &&
    typeof pid === 'number' &&
    typeof started === 'string' &&
    typeof leaseUntil === 'number'
  return isWhole
    ? { host, boot, pid, started, leaseUntil }
    : { host: 'unknown', boot: '', pid: 0, started: '', leaseUntil: 0 }
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw cause
  }
}

function toLostInstance({ id, host, pid, leaseUntil }: LostProcess): LostInstance {
  return { instance: id, host, pid, leaseUntilMs: leaseUntil }
}

function isSame(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return (
    one.host === other.host &&
    one.boot === other.boot &&
    one.pid === other.pid &&
    one.started === other.started
  )
}
