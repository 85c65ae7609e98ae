import { type JournalDatabase, readLiveInstances, readUnsettled } from '../../journal/index.ts'
import { fits, readNow, readStagedPartners } from './change-transaction.ts'
import type { PartnerRollout, RolloutSnapshot } from './rollout-store.ts'
import { fromStageRow, toRollout } from './stage-row.ts'

/** Reads all stages at one moment. */
export function readSnapshot(database: JournalDatabase): Promise<RolloutSnapshot> {
  const { key } = database.macKey
  const reading = database.db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return database.ask(() =>
    reading.execute(async (db) => {
      const nowMs = await readNow(database, db)
      const live = await readLiveInstances(db, database)
      const rows = await db.selectFrom('rollout_stages').selectAll().execute()
      const head = await db.selectFrom('rollout_head').selectAll().executeTakeFirst()
      const acks = await db.selectFrom('rollout_acks').selectAll().execute()
      const unsettled = await readUnsettled(db)
      const partners = new Map<string, PartnerRollout>()
      const damaged = new Set<string>()
      for (const row of rows) {
        const kept = fromStageRow(key, row)
        if (kept === undefined) damaged.add(row.partner)
        else partners.set(row.partner, toRollout(kept, nowMs))
      }
      // Read only where a row may be missing: without its row the stage of the file would count.
      const isWhole = head?.partners === rows.length && (await fits(db, key, head))
      for (const partner of isWhole ? [] : await readStagedPartners(db)) {
        if (!partners.has(partner)) damaged.add(partner)
      }
      const numbers = new Set(live.map(({ instance }) => instance))
      return {
        nowMs,
        partners,
        damaged,
        unsettled,
        liveInstances: [...numbers],
        acknowledgements: acks
          .filter(({ instance }) => numbers.has(instance))
          .map((row) => ({
            instance: row.instance,
            partner: row.partner,
            revision: row.revision,
            pendingRevision: row.pending_revision ?? undefined,
            writesV2: row.writes_v2,
            writesV3: row.writes_v3,
          })),
      }
    }),
  )
}
