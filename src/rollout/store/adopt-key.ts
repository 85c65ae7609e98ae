import type { JournalDatabase } from '../../journal/index.ts'
import { macOfEntry, toAuditRow } from './audit-row.ts'
import {
  aboutTrail,
  countStages,
  fits,
  isBlank,
  lockHead,
  readLastEntry,
  readNow,
  writeHead,
} from './change-transaction.ts'
import { fromStageRow, toStageRow } from './stage-row.ts'

/**
 * Makes the MACs of stages anew with the key of a journal that had none before, and says so in the audit trail, whose older rows stay as
 * they are. A row that is not as it was written gets none.
 */
export async function adoptKey(database: JournalDatabase): Promise<void> {
  const { key, unkeyed, keyed } = database.macKey
  if (!keyed) return
  await database.ask(async () => {
    const seen = await database.db.selectFrom('rollout_head').selectAll().executeTakeFirst()
    if (seen === undefined || seen.keyed_from !== null) return
    await database.db.transaction().execute(async (db) => {
      const head = await lockHead(database, db)
      if (head === undefined || head.keyed_from !== null || !fits(unkeyed, head, await readLastEntry(db)))
        return
      const [entries, blank] = [head.entries + 1, isBlank(head)]
      if (blank) return
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
      await writeHead(db, key, {
        entries,
        last_mac: mac,
        keyed_from: entries,
        partners: await countStages(db),
      })
    })
  })
}
