import { sql } from 'kysely'
import * as z from 'zod'

import { type JournalDatabase, macOf, macOfEnd, type TrailEnd } from '../../journal/index.ts'
import { formatSetting, parseStored, settingSchema, type StageSetting } from '../stage.ts'
import { type Db, forUpdate, isMac, type MacKey, readStages, rowsOf } from './stage-rows.ts'

/** One change; rows are only added. */
interface AuditRow {
  /** 1, 2, 3, …, without gaps. */
  readonly entry: number
  readonly partner: string
  readonly action: string
  /** What else an `AuditEntry` has; JSON. */
  readonly content: string
  /** Over that of the row before and all others. */
  readonly mac: string
}

/** The end of the audit trail as it is kept. */
export interface Head extends TrailEnd {
  readonly mac: string
}

/** What an operator did in the console that changes no stage: retried records, cleared dead letters, saw values, switched the sandbox. */
export type NotedAction = 'retry' | 'clear' | 'reveal' | 'sandbox'

/** What a row of the audit trail is about. `dismiss`: a lost instance is off; `repair`: the end was damaged. */
export type AuditAction = 'set' | 'back' | 'guard' | 'propose' | 'approve' | 'commit' | 'withdraw' | 'expire' | 'dismiss' | 'repair' | NotedAction // prettier-ignore

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
  return parseStored(contentSchema, text) ?? unreadable
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
  added: Omit<AuditEntry, 'entry'>,
): Promise<Head> {
  const row = toAuditRow({ ...added, entry: head.entries + 1 })
  const { entry, partner, action, content } = row
  const mac = macOfEntry(key, head.last_mac, row)
  await sql`insert into rollout_audit (entry, partner, action, content, mac)
    values (${entry}, ${partner}, ${action}, ${content}, ${mac})`.execute(db)
  return { ...head, entries: entry, last_mac: mac }
}

export async function lockHead(database: JournalDatabase, db: Db): Promise<Head | undefined> {
  const [head] = await rowsOf(db, sql<Head>`select * from rollout_head where id = 1 ${forUpdate(database)}`)
  return head
}

/** Writes the end of the trail with its MAC, and the number of stages as it is now. */
export async function writeHead(db: Db, key: Uint8Array, end: Omit<TrailEnd, 'partners'>): Promise<void> {
  const { entries, last_mac, keyed_from, repaired_ms } = end
  const [{ partners } = { partners: 0 }] = await rowsOf(db, sql<TrailEnd>`select count(*) as partners from rollout_stages`) // prettier-ignore
  const mac = macOfEnd(key, { entries, last_mac, keyed_from, partners, repaired_ms })
  await sql`insert into rollout_head (id, entries, last_mac, keyed_from, partners, repaired_ms, mac)
    values (1, ${entries}, ${last_mac}, ${keyed_from}, ${partners}, ${repaired_ms}, ${mac})
    on conflict (id) do update set entries = excluded.entries, last_mac = excluded.last_mac, keyed_from = excluded.keyed_from,
      partners = excluded.partners, repaired_ms = excluded.repaired_ms, mac = excluded.mac`.execute(db)
}

/** True for the row of a trail that has not begun. */
const isBlank = (head: Head): boolean => head.mac === '' && head.entries === 0 && head.last_mac === ''

/** True where the end of the trail is as it was written. Only without a key may it have none. */
export function fits({ key, keyed }: MacKey, head: Head): boolean {
  return (!keyed && isBlank(head)) || isMac(macOfEnd(key, head), head.mac)
}

/** True where the trail also has as many rows as its end says; `last`: the number of its last row. */
export const isWhole = (macKey: MacKey, head: Head, last: number | undefined): boolean =>
  fits(macKey, head) && head.entries === (last ?? 0)

/** The last row of the trail. */
export async function readLast(db: Db): Promise<Pick<AuditRow, 'entry' | 'mac'> | undefined> {
  const [row] = await rowsOf(db, sql<AuditRow>`select entry, mac from rollout_audit order by entry desc limit 1`) // prettier-ignore
  return row
}

/** The MAC of a row; undefined: there is none. */
export async function readMac(db: Db, entry: number): Promise<string | undefined> {
  const [row] = await rowsOf(db, sql<AuditRow>`select mac from rollout_audit where entry = ${entry}`)
  return row?.mac
}

/** The end of the rows that are there, for a repair; nothing is taken from an end that does not fit. */
export async function endOfRows({ keyed }: MacKey, db: Db, nowMs: number): Promise<Head> {
  const last = await readLast(db)
  return {
    entries: last?.entry ?? 0,
    last_mac: last?.mac ?? '',
    keyed_from: keyed ? 1 : null,
    partners: 0,
    repaired_ms: nowMs,
    mac: '',
  }
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
  const where = partner === undefined ? sql`` : sql`where partner = ${partner}`
  const some = limit === undefined ? sql`` : sql`limit ${limit}`
  const rows = await rowsOf(db, sql<AuditRow>`select * from rollout_audit ${where} order by entry desc ${some}`) // prettier-ignore
  return rows.map(fromAuditRow).reverse()
}

/** What the check of the audit trail has found. */
export interface Verified {
  readonly entries: number
  /** False: the trail began without a key of the journal, so a user who may write the database could have written a trail that fits. */
  readonly keyed: boolean
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
  const { key, keyed } = macKey
  const reading = database.db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return database.ask(() =>
    reading.execute(async (db) => {
      const [head] = await rowsOf(db, sql<Head>`select * from rollout_head`)
      const words = new Map<string, LastWord>()
      let last = { entry: 0, mac: '' }
      let knownMac = ''
      let broken: Broken | undefined
      for (const row of await rowsOf(db, sql<AuditRow>`select * from rollout_audit order by entry`)) {
        broken = faultOfRow(row, last, key)
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
      return { entries: last.entry, head: last.mac, keyed, broken }
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
  // Rows about the trail itself.
  if (row.partner === '') return
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
