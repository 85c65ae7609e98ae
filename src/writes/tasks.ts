import type { RecordRef } from '../journal/index.ts'
import type { PlannedRecord } from './plan.ts'
import type { WriteTask } from './post-records.ts'

/**
 * The tasks of the records at `positions`, in their order; one that is refused without being posted has none. `after` names
 * the nearest older open record of the same key, for which `wait` waits: once for all records that share a list, with the first
 * of them, which is the oldest.
 */
export function toTasks(
  records: readonly PlannedRecord[],
  positions: Iterable<number>,
  after: ReadonlyMap<number, readonly RecordRef[]>,
  firstOf: (position: number) => WriteTask['first'],
  wait: (position: number, older: readonly RecordRef[]) => Promise<boolean>,
): WriteTask[] {
  const tasks: WriteTask[] = []
  // Records of one key may share one list.
  const waits = new Map<readonly RecordRef[], Promise<boolean>>()
  for (const position of positions) {
    const planned = records[position]
    if (planned?.record === undefined) continue
    const { record, key } = planned
    const older = after.get(position)
    let waited = older === undefined ? undefined : waits.get(older)
    if (waited === undefined && older !== undefined && older.length > 0) {
      waited = wait(position, older)
      waits.set(older, waited)
    }
    tasks.push({ position, record, key, first: firstOf(position), after: waited })
  }
  return tasks
}

/**
 * Lets a record wait until the outcome of the one before it with the same key is durable. A process that ends between the two
 * would else leave both open, and nobody could tell any longer that the mark of the second hides that of the first. `kept`
 * resolves false where the outcome cannot become durable.
 */
export function waitForDurablePredecessor(
  tasks: readonly WriteTask[],
  kept: (position: number) => Promise<boolean>,
): readonly WriteTask[] {
  const last = new Map<string, number>()
  return tasks.map((task) => {
    const before = last.get(task.key)
    last.set(task.key, task.position)
    if (before === undefined) return task
    const both = Promise.all([task.after ?? true, kept(before)])
    return { ...task, after: both.then(([inTime, isKept]) => inTime && isKept) }
  })
}
