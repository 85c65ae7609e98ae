import type { RecordRef } from '../../journal/index.ts'
import type { PlannedRecord } from './plan.ts'
import type { WriteTask } from './send.ts'

/**
 * The tasks of the records at `positions`, in their order; one that is refused without being posted has none. `after` names
 * older open records of the same key, for which `wait` waits.
 */
export function toTasks(
  records: readonly PlannedRecord[],
  positions: Iterable<number>,
  after: ReadonlyMap<number, readonly RecordRef[]>,
  firstOf: (position: number) => WriteTask['first'],
  wait: (older: readonly RecordRef[]) => Promise<boolean>,
): WriteTask[] {
  const tasks: WriteTask[] = []
  for (const position of positions) {
    const planned = records[position]
    if (planned?.record === undefined) continue
    const { record, key } = planned
    const older = after.get(position)
    const waited = older === undefined || older.length === 0 ? undefined : wait(older)
    tasks.push({ position, record, key, first: firstOf(position), after: waited })
  }
  return tasks
}
