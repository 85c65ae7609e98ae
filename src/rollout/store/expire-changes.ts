import type { JournalDatabase } from '../../journal/index.ts'
import { type ChangeTransaction, inChangeTransaction } from './change-transaction.ts'
import { type KeptChange, toSetting } from './stage-row.ts'

/**
 * Ends the pending changes of partners that have expired. A commit that came before is finished then, and one that comes later finds none.
 * Error: `ADP_JOURNAL_DAMAGED` where the end of the trail is: no commit can come then.
 */
export function expireChanges(database: JournalDatabase, partners: readonly string[]): Promise<void> {
  return inChangeTransaction(database, { repairs: false }, async (transaction) => {
    for (const partner of partners) {
      const kept = await transaction.readStage(partner)
      if (kept === undefined || kept === 'damaged' || kept.pending === undefined) continue
      const { pending } = kept
      if (pending.expiresMs > transaction.nowMs) continue
      const entry = await dropChange(transaction, partner, pending, pending.by)
      await transaction.writeStage({ ...kept, pending: undefined, entry })
    }
  })
}

/** Adds to the trail that a pending change is not made; gives the number of the row. */
export function dropChange(
  { add, nowMs }: ChangeTransaction,
  partner: string,
  { from, revision, expiresMs, ...pending }: KeptChange,
  by: string,
): Promise<number> {
  const hasExpired = expiresMs <= nowMs
  const reason = hasExpired ? 'it was not committed in time' : 'another change came first'
  const action = hasExpired ? 'expire' : 'withdraw'
  return add({ by, partner, action, from, to: toSetting(pending), revision, reason })
}
