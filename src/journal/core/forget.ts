import { stateCodes } from '../lifecycle.ts'
import type { ForgetOperation } from '../store/operations.ts'
import type { BatchRows, ChangeContext } from './rows.ts'

/** Counts the open records of a batch as refused and deletes it. Nothing of it may have been applied, or be under way in another run. */
export function forget(
  { instance, ledger, write }: ChangeContext,
  { batch, open, lease }: ForgetOperation,
  rows: BatchRows | undefined,
): 'done' | 'lost' {
  // It is gone already: the answer to an earlier attempt was lost.
  if (rows === undefined) return 'done'
  const isOwn = rows.batch.owner === instance && lease === instance
  const isWithoutOutcome = rows.records.every(
    ({ state }) => state === stateCodes.open || state === stateCodes.refused,
  )
  if (!isOwn || rows.batch.open !== open || !isWithoutOutcome) return 'lost'
  ledger.move(rows.batch.partner, stateCodes.open, stateCodes.refused, open)
  write.forget(batch)
  return 'done'
}
