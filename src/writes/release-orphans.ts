import { AdapterError } from '../errors.ts'
import type { WriteContext } from './context.ts'
import { deadLetterSuperseded } from './dead-letter.ts'
import type { Resting } from './resting.ts'

type ReleaseContext = Pick<
  WriteContext,
  'journal' | 'orphans' | 'clock' | 'predecessors' | 'events' | 'newId'
>

/**
 * Gives up orphans that this instance cannot finish. It hands them over to instances that asked for them, because a client showed
 * credentials there. And it ends those that newer records of their keys have waited for as long as a lost write is read back
 * (`lookForMs`, by the partner's id), so that no orphan delays a newer mark for longer. `isBusy`: a run has the batch.
 */
export async function releaseOrphans(
  context: ReleaseContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
  lookForMs: (partner: string) => number,
): Promise<void> {
  await handOver(context, resting, isBusy)
  await letNewerPass(context, resting, isBusy, lookForMs)
}

async function handOver(
  { journal, orphans }: ReleaseContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
): Promise<void> {
  const held = [...orphans.keys()].filter(
    (batch) => resting.waiting(batch)?.missing === 'credentials' && !isBusy(batch),
  )
  if (held.length === 0) return
  for (const batch of await journal.handOver(held)) {
    orphans.delete(batch)
    resting.delete(batch)
  }
}

async function letNewerPass(
  context: ReleaseContext,
  resting: Resting,
  isBusy: (batch: number) => boolean,
  lookForMs: (partner: string) => number,
): Promise<void> {
  const { journal, orphans, clock } = context
  const partners = new Map<number, string>()
  for (const [batch, { sinceMs }] of orphans) {
    const waiting = resting.waiting(batch)
    if (waiting === undefined || isBusy(batch)) continue
    if (clock.nowMs() >= sinceMs + lookForMs(waiting.partner)) partners.set(batch, waiting.partner)
  }
  if (partners.size === 0) return
  const positions = new Map<number, number[]>()
  for (const { batch, position } of await journal.blocking([...partners.keys()])) {
    const own = orphans.get(batch)?.after.has(position) === true
    if (!own) continue
    const others = positions.get(batch)
    if (others === undefined) positions.set(batch, [position])
    else others.push(position)
  }
  for (const [batch, blocking] of positions) {
    const orphan = orphans.get(batch)
    if (orphan === undefined) continue
    const whose = { batch, partner: partners.get(batch) ?? '', lease: orphan.lease }
    await deadLetterSuperseded(context, whose, blocking).catch((cause: unknown) => {
      // Another instance has it now, and does this there.
      if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') return
      throw cause
    })
    const ended = new Set(blocking)
    const left = new Map([...orphan.after].filter(([position]) => !ended.has(position)))
    if (left.size === 0) orphans.delete(batch)
    else orphans.set(batch, { ...orphan, after: left })
  }
}
