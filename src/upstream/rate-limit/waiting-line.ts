import { FairLine } from '../fairness/fair-line.ts'
import type { QueueKey } from '../fairness/queue-key.ts'

/** The purpose of a call; the first kind goes before the second, the second before the third. */
export type CallPriority = 'write' | 'read' | 'comparison'

/** A call that waits for a token. */
export interface Waiter {
  readonly priority: CallPriority
  /** The client that the call is for. */
  readonly queueKey: QueueKey
  admit(): void
}

/** Calls that wait: by priority, within a priority partners and their owners in turns (round robin), within an owner in order. */
export interface WaitingLine {
  push(waiter: Waiter): void
  /** Takes out the next one; undefined when none waits. */
  shift(): Waiter | undefined
  remove(waiter: Waiter): void
  size(): number
  sizeOf(priority: CallPriority): number
}

const priorities: readonly CallPriority[] = ['write', 'read', 'comparison']

/** Creates an empty line. */
export function createWaitingLine(): WaitingLine {
  const lines: Readonly<Record<CallPriority, FairLine<Waiter>>> = {
    write: new FairLine(),
    read: new FairLine(),
    comparison: new FairLine(),
  }
  return {
    push: (waiter) => lines[waiter.priority].push(waiter),
    shift: () => {
      const priority = priorities.find((one) => lines[one].size > 0)
      return priority === undefined ? undefined : lines[priority].shift()
    },
    remove: (waiter) => lines[waiter.priority].remove(waiter),
    size: () => lines.write.size + lines.read.size + lines.comparison.size,
    sizeOf: (priority) => lines[priority].size,
  }
}
