import { sql } from 'kysely'
import * as z from 'zod'

import { type JournalDatabase, macOf, macOfEnd, type TrailEnd } from '../../journal/index.ts'
import { formatSetting, parseStored, settingSchema, type StageSetting } from '../stage.ts'
import { type Db, forUpdate, isMac, type MacKey, readStages, rowsOf } from './stage-rows.ts'

/** A row is only added, never changed. */
interface AuditRow {
  /** The number of the row: 1, 2, 3, …, without gaps. */
  readonly entry: number
  readonly partner: string
  readonly action: string
  /** The other members of an `AuditEntry` as JSON. */
  readonly content: string
  /** The MAC over the MAC of the previous row and all other columns. */
  readonly mac: string
}

/** The stored end of the audit trail. */
export interface Head extends TrailEnd {
  readonly mac: string
}

/** An action in the console that changes no stage: retrying records, clearing dead letters, revealing values, switching the sandbox. */
export type NotedAction = 'retry' | 'clear' | 'reveal' | 'sandbox'

/** What a row of the audit trail reports. `dismiss`: a lost instance is off. `repair`: the end of the trail was damaged. */
export type AuditAction = 'set' | 'back' | 'guard' | 'propose' | 'approve' | 'commit' | 'withdraw' | 'expire' | 'dismiss' | 'repair' | NotedAction // prettier-ignore

export interface AuditEntry {
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

/** What an instance knows of the audit trail. A trail that does not continue from there is an old copy or was forged. */
export interface KnownTrail {
  /** The name of the key of the MACs, or empty if the journal had no key. */
  readonly keyName: string
  readonly entries: number
  readonly mac: string
  /** The time of the last repair, or 0 if there was none. */
  readonly repairedMs: number
  /** The revisions of the partners whose stage was changed. */
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
/** Shown in place of a row that was changed by hand. */
const unreadable = { atMs: 0, by: '', from: undefined, to: undefined, revision: 0, reason: '(unreadable)' }

function readContent(text: string): z.output<typeof contentSchema> {
  return parseStored(contentSchema, text) ?? unreadable
}

function fromAuditRow({ entry, partner, action, content }: AuditRow): AuditEntry {
  const { from, to, ...others } = readContent(content)
  // An action that this version does not know is shown as it is.
  return { entry, partner, action: action as AuditAction, from, to, ...others }
}

/** Computes the MAC of a row, which covers the MAC of the previous row. */
export function macOfEntry(
  key: Uint8Array,
  previous: string,
  { entry, partner, action, content }: Omit<AuditRow, 'mac'>,
): string {
  return macOf(key, 'audit', [previous, entry, partner, action, content])
}

export const aboutTrail = (action: AuditAction, reason: string): Omit<AuditEntry, 'entry' | 'atMs'> => ({
  by: 'markbridge',
  partner: '',
  action,
  from: undefined,
  to: undefined,
  revision: 0,
  reason,
})

/** Adds a row to the trail. Returns the new end, which the caller has to write. */
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

/** Writes the end of the trail with its MAC and the present number of stages. */
export async function writeHead(db: Db, key: Uint8Array, end: Omit<TrailEnd, 'partners'>): Promise<void> {
  const { entries, last_mac, keyed_from, repaired_ms } = end
  const [{ partners } = { partners: 0 }] = await rowsOf(db, sql<TrailEnd>`select count(*) as partners from rollout_stages`) // prettier-ignore
  const mac = macOfEnd(key, { entries, last_mac, keyed_from, partners, repaired_ms })
  await sql`insert into rollout_head (id, entries, last_mac, keyed_from, partners, repaired_ms, mac)
    values (1, ${entries}, ${last_mac}, ${keyed_from}, ${partners}, ${repaired_ms}, ${mac})
    on conflict (id) do update set entries = excluded.entries, last_mac = excluded.last_mac, keyed_from = excluded.keyed_from,
      partners = excluded.partners, repaired_ms = excluded.repaired_ms, mac = excluded.mac`.execute(db)
}

const isBlank = (head: Head): boolean => head.mac === '' && head.entries === 0 && head.last_mac === ''

/** Returns true if the end of the trail was not altered. Only without a key may the end of a trail that has not begun lack a MAC. */
export function isHeadSound({ key, keyed }: MacKey, head: Head): boolean {
  return (!keyed && isBlank(head)) || isMac(macOfEnd(key, head), head.mac)
}

/** Returns true if the end also matches the number of the last row, `last`. */
export const isWhole = (macKey: MacKey, head: Head, last: number | undefined): boolean =>
  isHeadSound(macKey, head) && head.entries === (last ?? 0)

export async function readLast(db: Db): Promise<Pick<AuditRow, 'entry' | 'mac'> | undefined> {
  const [row] = await rowsOf(db, sql<AuditRow>`select entry, mac from rollout_audit order by entry desc limit 1`) // prettier-ignore
  return row
}

export async function readMac(db: Db, entry: number): Promise<string | undefined> {
  const [row] = await rowsOf(db, sql<AuditRow>`select mac from rollout_audit where entry = ${entry}`)
  return row?.mac
}

/** Returns an end for the existing rows, for a repair. Takes nothing from the stored end, which may be forged. */
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

export function toTrail(
  { key, keyed }: MacKey,
  { entries, last_mac: mac, repaired_ms: repairedMs }: Head,
): Omit<KnownTrail, 'revisions'> {
  // Identifies the key without revealing it.
  const keyName = keyed ? macOf(key, 'name of the key', []).slice(0, 32) : ''
  return { keyName, entries, mac, repairedMs: repairedMs ?? 0 }
}

/**
 * Returns true if a trail continues from the known one. `mac` is the present MAC of the row that was the last one then. A known key must
 * stay. After a repair the rows may differ: only the holder of the key can make a repair, and it must be later.
 */
export function continues(known: KnownTrail, now: Omit<KnownTrail, 'revisions'>, mac: unknown): boolean {
  if (known.keyName !== '' && known.keyName !== now.keyName) return false
  if (now.repairedMs !== known.repairedMs) return now.repairedMs > known.repairedMs
  return now.entries >= known.entries && (known.entries === 0 || mac === known.mac)
}

/** Absent members do not restrict the rows. */
export interface HistoryFilter {
  readonly partner?: string | undefined
  readonly limit?: number | undefined
}

/** Reads rows of the trail, oldest first. With a limit, reads the newest rows. */
export async function readHistory(db: Db, { partner, limit }: HistoryFilter): Promise<readonly AuditEntry[]> {
  const where = partner === undefined ? sql`` : sql`where partner = ${partner}`
  const some = limit === undefined ? sql`` : sql`limit ${limit}`
  const rows = await rowsOf(db, sql<AuditRow>`select * from rollout_audit ${where} order by entry desc ${some}`) // prettier-ignore
  return rows.map(fromAuditRow).reverse()
}

export interface Verified {
  readonly entries: number
  /** False if the trail began without a key. Anyone who can write to the database could then have forged the whole trail. */
  readonly keyed: boolean
  /** Empty if there is no row. */
  readonly head: string
  /** The first fault, or `undefined` if no row was altered and none is missing. */
  readonly broken: { readonly entry: number; readonly what: string } | undefined
}

type Broken = NonNullable<Verified['broken']>

interface LastWord {
  readonly entry: number
  /** `undefined` if no setting ever took effect. */
  readonly setting: StageSetting | undefined
}

/** Checks the whole trail, and compares the stages with the trail and with what is known of it, all at one moment. */
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
        recordLastWord(words, row)
      }
      const isContinued =
        known === undefined || head === undefined || continues(known, toTrail(macKey, head), knownMac)
      broken ??= faultOfEnd(macKey, head, last)
      if (!isContinued)
        broken ??= {
          entry: known.entries,
          what: `row ${known.entries} differs from the row that was known before`,
        }
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
  return { entry: row.entry, what: `row ${row.entry} was altered` }
}

function faultOfEnd(
  macKey: MacKey,
  head: Head | undefined,
  { entry, mac }: Pick<AuditRow, 'entry' | 'mac'>,
): Broken | undefined {
  if (head === undefined || !isHeadSound(macKey, head))
    return { entry, what: 'the end of the trail was altered' }
  if (head.entries === entry && head.last_mac === mac) return undefined
  return { entry: entry + 1, what: `the trail ends after row ${entry}, but had ${head.entries} rows` }
}

const applying: ReadonlySet<string> = new Set(['set', 'back', 'guard', 'commit'])

function recordLastWord(words: Map<string, LastWord>, row: AuditRow): void {
  // Rows about the trail itself do not count.
  if (row.partner === '') return
  const setting = applying.has(row.action) ? readContent(row.content).to : words.get(row.partner)?.setting
  words.set(row.partner, { entry: row.entry, setting })
}

/** Returns the first stage that contradicts the trail. */
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
    if (!isSame) return { entry: word?.entry ?? 0, what: `the stage of ${partner} contradicts the trail` }
  }
  for (const [partner, revision] of known?.revisions ?? []) {
    const what = `the stage of ${partner} is older than the stage that was known before`
    if ((stages.get(partner)?.state.revision ?? 0) < revision)
      return { entry: words.get(partner)?.entry ?? 0, what }
  }
  return undefined
}
