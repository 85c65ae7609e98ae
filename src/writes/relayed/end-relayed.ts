import type { StoredBatch } from '../../journal/index.ts'
import type { WriteContext } from '../context.ts'

/**
 * Ends orphans of a batch that V2 was sent, once a lost write would not be looked for any longer: V2 may have applied them, and nothing
 * of them is ever posted. Their client has no answer and may send the batch again. Resolves false while it is too early. Errors: those of
 * `Journal.settle`.
 */
export async function endRelayed(
  {
    journal,
    orphans,
    predecessors,
    clock,
  }: Pick<WriteContext, 'journal' | 'orphans' | 'predecessors' | 'clock'>,
  { batch, records }: StoredBatch,
  lookForMs: number,
): Promise<boolean> {
  const orphan = orphans.get(batch)
  if (orphan === undefined) return true
  if (clock.nowMs() < orphan.sinceMs + lookForMs) return false
  const positions = [...orphan.after.keys()].filter((position) => records[position]?.state === 'open')
  const end = { state: 'unknown', answer: undefined, reason: 'stopped', retry: 'resend' } as const
  await journal.settle(
    batch,
    positions.map((position) => ({ position, ...end })),
    orphan.lease,
  )
  orphans.delete(batch)
  predecessors.settled(batch, positions)
  return true
}
