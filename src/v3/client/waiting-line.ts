import { FairLine } from './shares/fair-line.ts'
import type { Share } from './shares/share.ts'

/** What a call is for; the first kind goes before the second, the second before the third. */
export type CallPriority = 'write' | 'read' | 'comparison'

/** A call that waits for its turn. */
export interface Waiter {
  readonly priority: CallPriority
  /** Whose call it is. */
  readonly share: Share
  admit(): void
}

/** Calls that wait: by priority, within a priority partners and their owners in turns, within an owner in order. */
export interface WaitingLine {
  push(waiter: Waiter): void
  /** Takes out the one whose turn it is; undefined when nobody waits. */
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
