import type { JournalDatabase } from '../../journal/index.ts'
import { macOfEntry, toAuditRow } from './audit-row.ts'
import {
  aboutTrail,
  countStages,
  isBlank,
  isWhole,
  lockHead,
  readLastEntry,
  readNow,
  writeHead,
} from './change-transaction.ts'
import { fromStageRow, toStageRow } from './stage-row.ts'

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
      if (head === undefined || !isWhole({ key: unkeyed, keyed: false }, head, await readLastEntry(db)))
        return
      if (isBlank(head)) {
        await writeHead(db, key, { ...head, keyed_from: 1, partners: await countStages(db) })
        return
      }
      const entries = head.entries + 1
      const entry = { ...aboutTrail('key', 'the journal has keys from here on'), entry: entries }
      const row = toAuditRow({ ...entry, atMs: await readNow(database, db) })
      const mac = macOfEntry(key, head.last_mac, row)
      await db
        .insertInto('rollout_audit')
        .values({ ...row, mac })
        .execute()
      for (const stage of await db.selectFrom('rollout_stages').selectAll().execute()) {
        const kept = fromStageRow(unkeyed, stage)
        if (kept === undefined) continue
        await db
          .updateTable('rollout_stages')
          .set({ mac: toStageRow(key, kept).mac })
          .where('partner', '=', stage.partner)
          .execute()
      }
      const partners = await countStages(db)
      await writeHead(db, key, { ...head, entries, last_mac: mac, keyed_from: entries, partners })
    })
  })
}
