import { type Kysely, sql, type Transaction } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { type JournalDatabase, type JournalTables } from '../../journal/index.ts'
import type { AuditAction, AuditEntry } from './rollout-store.ts'
import { macOfEntry, toAuditRow } from './audit-row.ts'
import { fromStageCells, parseCells, stageColumns, toCells } from './row-cells.ts'
import { isMac, type KeptStage, macOf, toStageRow } from './stage-row.ts'

/** The end of the audit trail. */
export type Head = JournalTables['rollout_head']

type MacKey = JournalDatabase['macKey']

/** A transaction that changes stages; others that do wait until it ends. */
export interface ChangeTransaction {
  readonly db: Transaction<JournalTables>
  /** By the clock of the database. */
  readonly nowMs: number
  /** False: the end of the trail was repaired by this change. */
  readonly wasSound: boolean
  /** Adds a row to the audit trail; gives its number. */
  readonly add: (entry: Omit<AuditEntry, 'entry' | 'atMs'>) => Promise<number>
  /** `damaged`: the row is not as it was written, or is gone. */
  readonly readStage: (partner: string) => Promise<KeptStage | 'damaged' | undefined>
  readonly writeStage: (kept: KeptStage) => Promise<void>
}

/** What a change does when the end of the audit trail is not as it was written. */
export interface ChangeOptions {
  /** True: it goes on from the rows that are there, and says so in the trail. Else it fails. */
  readonly repairs: boolean
}

/** Runs a change alone, with the audit trail that it adds to. Error: `ADP_JOURNAL_DAMAGED` where the end of the trail is. */
export function inChangeTransaction<Result>(
  database: JournalDatabase,
  { repairs }: ChangeOptions,
  work: (change: ChangeTransaction) => Promise<Result>,
): Promise<Result> {
  const { key } = database.macKey
  return database.ask(() =>
    database.db.transaction().execute(async (db) => {
      await endWhenPaused(database, db)
      const locked = await lockHead(database, db)
      const nowMs = await readNow(database, db)
      const isSound = locked !== undefined && isWhole(database.macKey, locked, await readLastEntry(db))
      if (!isSound && !repairs) throw damagedTrail()
      let head = isSound ? locked : { ...(await endOfRows(database, db)), repaired_ms: nowMs }
      const found = head
      const add: ChangeTransaction['add'] = async (entry) => {
        const row = toAuditRow({ ...entry, entry: head.entries + 1, atMs: nowMs })
        const mac = macOfEntry(key, head.last_mac, row)
        await db
          .insertInto('rollout_audit')
          .values({ ...row, mac })
          .execute()
        head = { ...head, entries: row.entry, last_mac: mac }
        return row.entry
      }
      if (!isSound) await add(aboutTrail('repair', 'the end of the audit trail was not as it was written'))
      const result = await work({
        db,
        nowMs,
        wasSound: isSound,
        add,
        readStage: (partner) => readStage(database, db, partner),
        writeStage: async (kept) => {
          const { partner, ...row } = toStageRow(key, kept)
          await db
            .insertInto('rollout_stages')
            .values({ partner, ...row })
            .onConflict((conflict) => conflict.column('partner').doUpdateSet(row))
            .execute()
        },
      })
      if (head !== found) await writeHead(db, key, { ...head, partners: await countStages(db) })
      return result
    }),
  )
}

/** A process that is stopped in the middle must not keep the kill switch, or the renewal of leases, waiting. */
async function endWhenPaused({ dialect }: JournalDatabase, db: Kysely<JournalTables>): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 1000`.execute(db)
}

const damagedTrail = (): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    'The end of the audit trail of stages is not as it was written. No stage was changed. List the trail with markbridge rollout history; ' +
      'markbridge rollout back works all the same, and notes in the trail that its end was repaired.',
  )

/** A row about the trail itself. */
export const aboutTrail = (action: AuditAction, reason: string): Omit<AuditEntry, 'entry' | 'atMs'> => ({
  by: 'markbridge',
  partner: '',
  action,
  from: undefined,
  to: undefined,
  revision: 0,
  reason,
})

export async function readNow(database: JournalDatabase, db: Kysely<JournalTables>): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${database.nowMs()} as now`.execute(db)
  return Number(rows[0]?.now)
}

export async function lockHead(
  { dialect }: JournalDatabase,
  db: Kysely<JournalTables>,
): Promise<Head | undefined> {
  return db
    .selectFrom('rollout_head')
    .selectAll()
    .where('id', '=', 1)
    .$if(dialect === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst()
}

/** True for the row of a trail that has not begun. */
export const isBlank = (head: Head): boolean => head.mac === '' && head.entries === 0 && head.last_mac === ''

/** True where the end of the trail is as it was written. Only without a key may it have none. */
export function fits({ key, keyed }: Pick<MacKey, 'key' | 'keyed'>, head: Head): boolean {
  return (!keyed && isBlank(head)) || isMac(macOfHead(key, head), head.mac)
}

/** True where the trail also has as many rows as its end says; `last`: the number of its last row, if it has one. */
export const isWhole = (
  macKey: Pick<MacKey, 'key' | 'keyed'>,
  head: Head,
  last: number | undefined,
): boolean => fits(macKey, head) && head.entries === (last ?? 0)

/** The number of the last row of the trail. */
export async function readLastEntry(db: Kysely<JournalTables>): Promise<number | undefined> {
  const row = await db
    .selectFrom('rollout_audit')
    .select(({ fn }) => fn.max('entry').as('entry'))
    .executeTakeFirst()
  return row?.entry ?? undefined
}

const macOfHead = (key: Uint8Array, head: Omit<Head, 'mac' | 'id'>): string =>
  macOf(key, 'head', [
    head.entries,
    head.last_mac,
    head.keyed_from,
    head.partners,
    // As it was written before there were repairs.
    ...(head.repaired_ms === null ? [] : [head.repaired_ms]),
  ])

export async function writeHead(
  db: Kysely<JournalTables>,
  key: Uint8Array,
  { entries, last_mac, keyed_from, partners, repaired_ms }: Omit<Head, 'mac' | 'id'>,
): Promise<void> {
  const row = { entries, last_mac, keyed_from, partners, repaired_ms }
  const all = { ...row, mac: macOfHead(key, row) }
  await db
    .insertInto('rollout_head')
    .values({ id: 1, ...all })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(all))
    .execute()
}

/** The end of the rows that are there; nothing is taken from an end that does not fit. */
async function endOfRows(
  { macKey: { key, keyed } }: JournalDatabase,
  db: Kysely<JournalTables>,
): Promise<Omit<Head, 'repaired_ms'>> {
  const last = await db
    .selectFrom('rollout_audit')
    .select(['entry', 'mac'])
    .orderBy('entry', 'desc')
    .limit(1)
    .executeTakeFirst()
  return {
    id: 1,
    entries: last?.entry ?? 0,
    last_mac: last?.mac ?? '',
    keyed_from: keyed ? ((await findKeyEntry(db, key)) ?? 1) : null,
    partners: 0,
    mac: '',
  }
}

/** The row with which the trail came under the key; undefined: it always was. */
async function findKeyEntry(db: Kysely<JournalTables>, key: Uint8Array): Promise<number | undefined> {
  const rows = await db.selectFrom('rollout_audit').selectAll().where('action', '=', 'key').execute()
  for (const { mac, ...row } of rows) {
    const before = await db
      .selectFrom('rollout_audit')
      .select('mac')
      .where('entry', '=', row.entry - 1)
      .executeTakeFirst()
    if (isMac(macOfEntry(key, before?.mac ?? '', row), mac)) return row.entry
  }
  return undefined
}

export async function countStages(db: Kysely<JournalTables>): Promise<number> {
  const { n } = await db
    .selectFrom('rollout_stages')
    .select(({ fn }) => fn.countAll<number | string>().as('n'))
    .executeTakeFirstOrThrow()
  return Number(n)
}

async function readStage(
  database: JournalDatabase,
  db: Kysely<JournalTables>,
  partner: string,
): Promise<KeptStage | 'damaged' | undefined> {
  const row = await db
    .selectFrom('rollout_stages')
    .select(toCells(database, stageColumns).as('content'))
    .where('partner', '=', partner)
    .executeTakeFirst()
  if (row !== undefined) return fromStageCells(database.macKey, parseCells(row.content)) ?? 'damaged'
  return (await readStagedPartners(db)).has(partner) ? 'damaged' : undefined
}

/** Partners whose stage was changed once, by the audit trail. */
export async function readStagedPartners(db: Kysely<JournalTables>): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('rollout_audit')
    .select('partner')
    .distinct()
    .where('action', 'in', ['set', 'back', 'guard', 'propose'])
    .execute()
  return new Set(rows.map(({ partner }) => partner))
}
