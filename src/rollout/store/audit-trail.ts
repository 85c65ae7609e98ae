import * as z from 'zod'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { formatSetting, settingSchema, type StageSetting } from '../stage.ts'
import {
  countStages,
  type Db,
  fromStageRow,
  isMac,
  type MacKey,
  macOf,
  readNow,
  readStages,
  writeStage,
} from './stage-rows.ts'

type AuditRow = JournalTables['rollout_audit']

/** The end of the audit trail: the one row that each change of a stage locks. */
export type Head = JournalTables['rollout_head']

/** What a row of the audit trail is about. `hold`: a guard stops a partner where it is; `dismiss`: a lost instance is off; `key`: the journal got keys; `repair`: its end was damaged. */
export type AuditAction =
  | 'set'
  | 'back'
  | 'guard'
  | 'propose'
  | 'approve'
  | 'commit'
  | 'withdraw'
  | 'expire'
  | 'hold'
  | 'dismiss'
  | 'key'
  | 'repair'

/** A row of the audit trail. */
export interface AuditEntry {
  /** 1 for the oldest, without gaps. */
  readonly entry: number
  readonly atMs: number
  readonly by: string
  /** Empty for rows about the trail itself. */
  readonly partner: string
  readonly action: AuditAction
  readonly from: StageSetting | undefined
  readonly to: StageSetting | undefined
  readonly revision: number
  readonly reason: string
}

/** How far an instance has seen the audit trail come. One that does not go on from there is an old copy or was forged. */
export interface KnownTrail {
  /** Of the key of its MACs; empty: the journal had none. */
  readonly keyName: string
  readonly entries: number
  /** Of the last row. */
  readonly mac: string
  /** 0: never. */
  readonly repairedMs: number
  /** Of partners whose stage was changed. */
  readonly revisions: readonly (readonly [partner: string, revision: number])[]
}

function toAuditRow({ entry, partner, action, ...content }: AuditEntry): Omit<AuditRow, 'mac'> {
  return { entry, partner, action, content: JSON.stringify(content) }
}

const contentSchema = z.object({
  atMs: z.number(),
  by: z.string(),
  from: settingSchema.optional().catch(undefined),
  to: settingSchema.optional().catch(undefined),
  revision: z.number(),
  reason: z.string(),
})
/** What is shown of a row that was changed by hand. */
const unreadable = { atMs: 0, by: '', from: undefined, to: undefined, revision: 0, reason: '(unreadable)' }

function readContent(text: string): z.output<typeof contentSchema> {
  try {
    return contentSchema.parse(JSON.parse(text))
  } catch {
    return unreadable
  }
}

function fromAuditRow({ entry, partner, action, content }: AuditRow): AuditEntry {
  const { from, to, ...others } = readContent(content)
  // An action that this version does not know is shown as it is.
  return { entry, partner, action: action as AuditAction, from, to, ...others }
}

/** The MAC of a row, over that of the row before. */
export function macOfEntry(
  key: Uint8Array,
  previous: string,
  { entry, partner, action, content }: Omit<AuditRow, 'mac'>,
): string {
  return macOf(key, 'audit', [previous, entry, partner, action, content])
}

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

/** Adds a row behind an end of the trail; returns the end after it, which is not written yet. */
export async function addEntry(
  db: Db,
  key: Uint8Array,
  head: Head,
  entry: Omit<AuditEntry, 'entry'>,
): Promise<Head> {
  const row = toAuditRow({ ...entry, entry: head.entries + 1 })
  const mac = macOfEntry(key, head.last_mac, row)
  await db
    .insertInto('rollout_audit')
    .values({ ...row, mac })
    .execute()
  return { ...head, entries: row.entry, last_mac: mac }
}

export async function lockHead({ dialect }: JournalDatabase, db: Db): Promise<Head | undefined> {
  return db
    .selectFrom('rollout_head')
    .selectAll()
    .where('id', '=', 1)
    .$if(dialect === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst()
}

const macOfHead = (key: Uint8Array, head: Omit<Head, 'mac' | 'id'>): string =>
  macOf(key, 'head', [head.entries, head.last_mac, head.keyed_from, head.partners, head.repaired_ms])

/** Writes the end of the trail with its MAC, and the number of stages as it is now. */
export async function writeHead(
  db: Db,
  key: Uint8Array,
  { entries, last_mac, keyed_from, repaired_ms }: Omit<Head, 'mac' | 'id' | 'partners'>,
): Promise<void> {
  const row = { entries, last_mac, keyed_from, partners: await countStages(db), repaired_ms }
  const all = { ...row, mac: macOfHead(key, row) }
  await db
    .insertInto('rollout_head')
    .values({ id: 1, ...all })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(all))
    .execute()
}

/** True for the row of a trail that has not begun. */
const isBlank = (head: Head): boolean => head.mac === '' && head.entries === 0 && head.last_mac === ''

/** True where the end of the trail is as it was written. Only without a key may it have none. */
export function fits({ key, keyed }: MacKey, head: Head): boolean {
  return (!keyed && isBlank(head)) || isMac(macOfHead(key, head), head.mac)
}

/** True where the trail also has as many rows as its end says; `last`: the number of its last row. */
export const isWhole = (macKey: MacKey, head: Head, last: number | undefined): boolean =>
  fits(macKey, head) && head.entries === (last ?? 0)

/** The last row of the trail. */
export async function readLast(db: Db): Promise<Pick<AuditRow, 'entry' | 'mac'> | undefined> {
  const rows = db.selectFrom('rollout_audit').select(['entry', 'mac'])
  return rows.orderBy('entry', 'desc').limit(1).executeTakeFirst()
}

/** The MAC of a row; undefined: there is none. */
export async function readMac(db: Db, entry: number): Promise<string | undefined> {
  const row = await db.selectFrom('rollout_audit').select('mac').where('entry', '=', entry).executeTakeFirst()
  return row?.mac
}

/** The end of the rows that are there, for a repair; nothing is taken from an end that does not fit. */
export async function endOfRows({ key, keyed }: MacKey, db: Db, nowMs: number): Promise<Head> {
  const last = await readLast(db)
  return {
    id: 1,
    entries: last?.entry ?? 0,
    last_mac: last?.mac ?? '',
    keyed_from: keyed ? ((await findKeyEntry(db, key)) ?? 1) : null,
    partners: 0,
    repaired_ms: nowMs,
    mac: '',
  }
}

/** The row with which the trail came under the key; undefined: it always was. */
async function findKeyEntry(db: Db, key: Uint8Array): Promise<number | undefined> {
  const rows = await db.selectFrom('rollout_audit').selectAll().where('action', '=', 'key').execute()
  for (const { mac, ...row } of rows)
    if (isMac(macOfEntry(key, (await readMac(db, row.entry - 1)) ?? '', row), mac)) return row.entry
  return undefined
}

/**
 * Puts the trail and the stages of a journal under its key, once: a trail that has not begun gets an end under the key; to one from before
 * the journal had keys a row is added that says so, and its older rows stay as they are. A stage that is not as it was written gets no MAC.
 * What is not under the key after that is forged.
 */
export async function adoptKey(database: JournalDatabase): Promise<void> {
  const { macKey } = database
  const { key, unkeyed } = macKey
  if (!macKey.keyed) return
  await database.ask(async () => {
    if (!(await macKey.awaitsTrail(database.db))) return
    await database.db.transaction().execute(async (db) => {
      const head = await lockHead(database, db)
      if (!(await macKey.awaitsTrail(db))) return
      await macKey.sealTrail(db)
      if (head === undefined) return
      if (!isWhole({ key: unkeyed, keyed: false }, head, (await readLast(db))?.entry)) return
      if (isBlank(head)) {
        await writeHead(db, key, { ...head, keyed_from: 1 })
        return
      }
      const entry = aboutTrail('key', 'the journal has keys from here on')
      const next = await addEntry(db, key, head, { ...entry, atMs: await readNow(database, db) })
      for (const stage of await db.selectFrom('rollout_stages').selectAll().execute()) {
        const kept = fromStageRow(unkeyed, stage)
        if (kept !== undefined) await writeStage(db, macKey, kept)
      }
      await writeHead(db, key, { ...next, keyed_from: next.entries })
    })
  })
}

/** What an end of the trail says that is as it was written. */
export function toTrail(
  { key, keyed }: MacKey,
  { entries, last_mac: mac, repaired_ms: repairedMs }: Head,
): Omit<KnownTrail, 'revisions'> {
  // Tells another key, and nothing of this one.
  const keyName = keyed ? macOf(key, 'name of the key', []).slice(0, 32) : ''
  return { keyName, entries, mac, repairedMs: repairedMs ?? 0 }
}

/**
 * True where a trail goes on from the one that was known; `mac` is that of the row that was the last one then. A key that was known stays.
 * After a repair the rows may be others: only who has the key can have made it, and it came later.
 */
export function continues(known: KnownTrail, now: Omit<KnownTrail, 'revisions'>, mac: unknown): boolean {
  if (known.keyName !== '' && known.keyName !== now.keyName) return false
  if (now.repairedMs !== known.repairedMs) return now.repairedMs > known.repairedMs
  return now.entries >= known.entries && (known.entries === 0 || mac === known.mac)
}

/** Which rows of the trail; without a partner those of all. */
export interface HistoryFilter {
  readonly partner?: string | undefined
  readonly limit?: number | undefined
}

/** Reads rows of the trail, oldest first; with a limit the newest ones. */
export async function readHistory(db: Db, { partner, limit }: HistoryFilter): Promise<readonly AuditEntry[]> {
  let rows = db.selectFrom('rollout_audit').selectAll().orderBy('entry', 'desc')
  if (partner !== undefined) rows = rows.where('partner', '=', partner)
  if (limit !== undefined) rows = rows.limit(limit)
  return (await rows.execute()).map(fromAuditRow).reverse()
}

/** What the check of the audit trail has found. */
export interface Verified {
  readonly entries: number
  /** False: the journal has no keys, so a user who may write the database could have written a trail that fits. */
  readonly keyed: boolean
  /** With keys: the first row that needs one; those before were written without. */
  readonly keyedFrom: number | undefined
  /** MAC of the last row; empty where there is none. */
  readonly head: string
  /** Undefined: each row is as it was written, and none is missing. */
  readonly broken: { readonly entry: number; readonly what: string } | undefined
}

type Broken = NonNullable<Verified['broken']>

/** What the trail says of a partner. */
interface LastWord {
  readonly entry: number
  /** The setting that was applied last; undefined: none was. */
  readonly setting: StageSetting | undefined
}

/** Checks the trail from its first row to its end, and the stages against it and against what is known of it, at one moment. */
export function verifyTrail(database: JournalDatabase, known: KnownTrail | undefined): Promise<Verified> {
  const { macKey } = database
  const { key, unkeyed, keyed } = macKey
  const reading = database.db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return database.ask(() =>
    reading.execute(async (db) => {
      const head = await db.selectFrom('rollout_head').selectAll().executeTakeFirst()
      const keyedFrom = keyed ? (head?.keyed_from ?? undefined) : undefined
      const words = new Map<string, LastWord>()
      let last = { entry: 0, mac: '' }
      let knownMac = ''
      let broken: Broken | undefined
      for (const row of await db.selectFrom('rollout_audit').selectAll().orderBy('entry').execute()) {
        broken = faultOfRow(row, last, keyed && row.entry >= (keyedFrom ?? 1) ? key : unkeyed)
        if (broken !== undefined) break
        last = row
        if (row.entry === known?.entries) knownMac = row.mac
        noteWord(words, row)
      }
      const isContinued =
        known === undefined || head === undefined || continues(known, toTrail(macKey, head), knownMac)
      broken ??= faultOfEnd(macKey, head, last)
      if (!isContinued)
        broken ??= { entry: known.entries, what: `row ${known.entries} is not the one that was known before` }
      broken ??= await findFalseStage(macKey, db, words, known)
      return { entries: last.entry, head: last.mac, keyed, keyedFrom, broken }
    }),
  )
}

function faultOfRow(
  { mac, ...row }: AuditRow,
  last: Pick<AuditRow, 'entry' | 'mac'>,
  key: Uint8Array,
): Broken | undefined {
  const expected = last.entry + 1
  if (row.entry !== expected) return { entry: expected, what: `row ${expected} is missing` }
  if (isMac(macOfEntry(key, last.mac, row), mac)) return undefined
  return { entry: row.entry, what: `row ${row.entry} is not as it was written` }
}

function faultOfEnd(
  macKey: MacKey,
  head: Head | undefined,
  { entry, mac }: Pick<AuditRow, 'entry' | 'mac'>,
): Broken | undefined {
  if (head === undefined || !fits(macKey, head))
    return { entry, what: 'the end of the trail is not as it was written' }
  if (head.entries === entry && head.last_mac === mac) return undefined
  return { entry: entry + 1, what: `the trail ends after row ${entry}, and it had ${head.entries} rows` }
}

const applying: ReadonlySet<string> = new Set(['set', 'back', 'guard', 'commit'])

function noteWord(words: Map<string, LastWord>, row: AuditRow): void {
  // Rows about no partner, and those that change no stage.
  if (row.partner === '' || row.action === 'hold') return
  const setting = applying.has(row.action) ? readContent(row.content).to : words.get(row.partner)?.setting
  words.set(row.partner, { entry: row.entry, setting })
}

/** A stage that is not what the trail says of it last. */
async function findFalseStage(
  macKey: MacKey,
  db: Db,
  words: ReadonlyMap<string, LastWord>,
  known: KnownTrail | undefined,
): Promise<Broken | undefined> {
  const stages = await readStages(db, macKey)
  for (const partner of new Set([...stages.keys(), ...words.keys()])) {
    const [kept, word] = [stages.get(partner), words.get(partner)]
    const isSame =
      kept !== undefined &&
      kept.entry === word?.entry &&
      (word.setting === undefined
        ? kept.state.revision === 0
        : formatSetting(word.setting) === formatSetting(kept.state))
    if (!isSame)
      return { entry: word?.entry ?? 0, what: `the stage of ${partner} is not what the trail says of it` }
  }
  for (const [partner, revision] of known?.revisions ?? []) {
    const what = `the stage of ${partner} is older than the one that was known before`
    if ((stages.get(partner)?.state.revision ?? 0) < revision)
      return { entry: words.get(partner)?.entry ?? 0, what }
  }
  return undefined
}
