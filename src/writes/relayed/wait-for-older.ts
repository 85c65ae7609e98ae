import type { RecordRef } from '../../journal/index.ts'
import type { WriteContext } from '../context.ts'
import { type OlderReading, readOlder } from './read-older.ts'

/** A pause before the journal is asked again, where another run has an older record or it could not be read. */
const AGAIN_AFTER_MS = 200

/**
 * Waits until V2 may be sent a batch: no older record of its keys is under way on V3, on any instance, and none has an unknown outcome.
 * Those are read back here and now. False: the time was over first, so V2 must not be sent it. Errors: those of the journal.
 */
export async function waitForOlder(
  context: WriteContext,
  batch: number,
  keys: readonly (string | undefined)[],
  reading: OlderReading,
): Promise<boolean> {
  const { journal, predecessors, clock } = context
  const own = firstOfEach(batch, keys)
  if (own.length === 0) return true
  for (;;) {
    const unsettled = await journal.olderUnsettled(own)
    if (unsettled.length === 0) return true
    const leftMs = reading.deadlineMs - clock.nowMs()
    if (leftMs <= 0) return false
    const open = unsettled.filter(({ isOpen }) => isOpen).map(({ older }) => older)
    if (open.length > 0) {
      if (!(await predecessors.until(open, leftMs))) return false
      continue
    }
    const read = [...byBatch(unsettled.map(({ older }) => older))].map(([number, positions]) =>
      readOlder(context, number, positions, reading),
    )
    if ((await Promise.all(read)).includes(true)) continue
    await new Promise<void>((resolve) => void clock.after(Math.min(AGAIN_AFTER_MS, leftMs), resolve))
  }
}

/** The others of a key have the same older ones. */
function firstOfEach(batch: number, keys: readonly (string | undefined)[]): readonly RecordRef[] {
  const first = new Map<string, RecordRef>()
  for (const [position, key] of keys.entries())
    if (key !== undefined && !first.has(key)) first.set(key, { batch, position })
  return [...first.values()]
}

function byBatch(records: readonly RecordRef[]): ReadonlyMap<number, readonly number[]> {
  const positions = new Map<number, Set<number>>()
  for (const { batch, position } of records)
    positions.set(batch, (positions.get(batch) ?? new Set<number>()).add(position))
  return new Map([...positions].map(([batch, own]) => [batch, [...own].sort((one, other) => one - other)]))
}
