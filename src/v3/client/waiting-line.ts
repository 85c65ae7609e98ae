/** What a call is for; the first kind goes before the second, the second before the third. */
export type CallPriority = 'write' | 'read' | 'comparison'

/** A call that waits for its turn. */
export interface Waiter {
  readonly priority: CallPriority
  /** Whose call it is. */
  readonly share: string
  admit(): void
}

/** Calls that wait: by priority, within a priority the shares in turns, within a share in order. */
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
  // A Map keeps the order of its keys: the share that was served goes to the end.
  const lines: Record<CallPriority, Map<string, Set<Waiter>>> = {
    write: new Map(),
    read: new Map(),
    comparison: new Map(),
  }
  const counts: Record<CallPriority, number> = { write: 0, read: 0, comparison: 0 }
  const takeFrom = (priority: CallPriority): Waiter | undefined => {
    const shares = lines[priority]
    const [turn] = shares
    if (turn === undefined) return undefined
    const [share, waiting] = turn
    const [first] = waiting
    shares.delete(share)
    if (first === undefined) return undefined
    waiting.delete(first)
    if (waiting.size > 0) shares.set(share, waiting)
    counts[priority] -= 1
    return first
  }
  return {
    push: (waiter) => {
      const shares = lines[waiter.priority]
      const waiting = shares.get(waiter.share) ?? new Set()
      shares.set(waiter.share, waiting.add(waiter))
      counts[waiter.priority] += 1
    },
    shift: () => {
      const priority = priorities.find((one) => counts[one] > 0)
      return priority === undefined ? undefined : takeFrom(priority)
    },
    remove: (waiter) => {
      const shares = lines[waiter.priority]
      const waiting = shares.get(waiter.share)
      if (waiting?.delete(waiter) !== true) return
      if (waiting.size === 0) shares.delete(waiter.share)
      counts[waiter.priority] -= 1
    },
    size: () => counts.write + counts.read + counts.comparison,
    sizeOf: (priority) => counts[priority],
  }
}
