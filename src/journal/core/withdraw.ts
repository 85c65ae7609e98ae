import type { BatchRows, ChangeContext } from './rows.ts'

/** Removes a batch that was begun too late. One that was taken over meanwhile is finished there. */
export function withdraw(
  { instance, ledger, write }: ChangeContext,
  batch: number,
  rows: BatchRows | undefined,
): void {
  if (rows?.batch.owner !== instance) return
  for (const { state } of rows.records) ledger.remove(rows.batch.partner, state, 1)
  write.deleteBatch(batch)
}
