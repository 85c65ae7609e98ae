import type { Kysely } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { type AuditRow, fromAuditRow, macOfEntry } from './audit-row.ts'
import { fits } from './change-transaction.ts'
import { continues, toTrail } from './known-trail.ts'
import type { AuditEntry, KnownTrail, Verified } from './rollout-store.ts'
import { fromStageCells, parseCells, stageColumns, toCells } from './row-cells.ts'
import { formatSetting, isMac } from './stage-row.ts'

/** Rows that are in memory at a time. */
const PAGE = 1_000

/** Reads rows of the trail, oldest first; with a limit the newest ones. */
export async function readHistory(
  { db }: JournalDatabase,
  { partner, limit }: { readonly partner?: string; readonly limit?: number },
): Promise<readonly AuditEntry[]> {
  const rows = await db
    .selectFrom('rollout_audit')
    .selectAll()
    .$if(partner !== undefined, (query) => query.where('partner', '=', partner ?? ''))
    .orderBy('entry', 'desc')
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
    .execute()
  return rows.map(fromAuditRow).reverse()
}

/** The MAC of a row; undefined: there is none. */
export async function readMac({ db }: JournalDatabase, entry: number): Promise<string | undefined> {
  const row = await db.selectFrom('rollout_audit').select('mac').where('entry', '=', entry).executeTakeFirst()
  return row?.mac
}

type Broken = NonNullable<Verified['broken']>

/** What the trail says of a partner. */
interface LastWord {
  readonly entry: number
  /** The setting that was applied last; undefined: none was. */
  readonly setting: string | undefined
}

/** Checks the trail from its first row to its end, and the stages against it and against what is known of it, at one moment. */
export function verifyTrail(database: JournalDatabase, known: KnownTrail | undefined): Promise<Verified> {
  const { key, unkeyed, keyed } = database.macKey
  const reading = database.db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return database.ask(() =>
    reading.execute(async (db) => {
      const head = await db.selectFrom('rollout_head').selectAll().executeTakeFirst()
      const keyedFrom = head?.keyed_from ?? undefined
      const isKeyed = (entry: number): boolean => keyed && entry >= (keyedFrom ?? 1)
      const words = new Map<string, LastWord>()
      let [last, lastMac] = [0, '']
      let broken: Broken | undefined
      let knownMac = ''
      for await (const row of rowsOf(db)) {
        broken ??= faultOfRow(row, last, lastMac, isKeyed(row.entry) ? key : unkeyed)
        if (broken !== undefined) break
        ;[last, lastMac] = [row.entry, row.mac]
        if (row.entry === known?.entries) knownMac = row.mac
        noteWord(words, row)
      }
      if (broken === undefined && (head === undefined || !fits(database.macKey, head))) {
        broken = { entry: last, what: 'the end of the trail is not as it was written' }
      } else if (broken === undefined && (head?.entries !== last || head.last_mac !== lastMac)) {
        broken = {
          entry: last + 1,
          what: `the trail ends after row ${last}, and it had ${head?.entries ?? 0} rows`,
        }
      }
      if (
        known !== undefined &&
        head !== undefined &&
        !continues(known, toTrail(database.macKey, head), knownMac)
      )
        broken ??= { entry: known.entries, what: `row ${known.entries} is not the one that was known before` }
      broken ??= await findFalseStage(database, db, words, known)
      return { entries: last, head: lastMac, keyed, keyedFrom: keyed ? keyedFrom : undefined, broken }
    }),
  )
}

async function* rowsOf(db: Kysely<JournalTables>): AsyncGenerator<AuditRow, void> {
  for (let after = -Infinity; ;) {
    const page = await db
      .selectFrom('rollout_audit')
      .selectAll()
      .$if(after !== -Infinity, (query) => query.where('entry', '>', after))
      .orderBy('entry')
      .limit(PAGE)
      .execute()
    yield* page
    const end = page.at(-1)
    if (end === undefined || page.length < PAGE) return
    after = end.entry
  }
}

function faultOfRow(row: AuditRow, last: number, lastMac: string, key: Uint8Array): Broken | undefined {
  if (row.entry !== last + 1) return { entry: last + 1, what: `row ${last + 1} is missing` }
  const { mac, ...content } = row
  if (isMac(macOfEntry(key, lastMac, content), mac)) return undefined
  return { entry: row.entry, what: `row ${row.entry} is not as it was written` }
}

const applying: ReadonlySet<string> = new Set(['set', 'back', 'guard', 'commit'])

function noteWord(words: Map<string, LastWord>, row: AuditRow): void {
  // Rows about no partner, and those that change no stage.
  if (row.partner === '' || row.action === 'hold') return
  const setting = applying.has(row.action) ? (row.setting_to ?? undefined) : words.get(row.partner)?.setting
  words.set(row.partner, { entry: row.entry, setting })
}

/** A stage that is not what the trail says of it last. */
async function findFalseStage(
  database: JournalDatabase,
  db: Kysely<JournalTables>,
  words: ReadonlyMap<string, LastWord>,
  known: KnownTrail | undefined,
): Promise<Broken | undefined> {
  const rows = await db
    .selectFrom('rollout_stages')
    .select(['partner', toCells(database, stageColumns).as('content')])
    .execute()
  const stages = new Map(
    rows.map(({ partner, content }) => [partner, fromStageCells(database.macKey, parseCells(content))]),
  )
  for (const partner of new Set([...stages.keys(), ...words.keys()])) {
    const [kept, word] = [stages.get(partner), words.get(partner)]
    const isSame =
      kept !== undefined &&
      kept.entry === word?.entry &&
      (word.setting === undefined ? kept.state.revision === 0 : word.setting === formatSetting(kept.state))
    if (!isSame)
      return { entry: word?.entry ?? 0, what: `the stage of ${partner} is not what the trail says of it` }
  }
  for (const [partner, revision] of known?.revisions ?? []) {
    if ((stages.get(partner)?.state.revision ?? 0) < revision)
      return {
        entry: words.get(partner)?.entry ?? 0,
        what: `the stage of ${partner} is older than the one that was known before`,
      }
  }
  return undefined
}
