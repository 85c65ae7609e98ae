import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Sets the nice value of the calling thread: where another thread wants the same processor, that one has it. Linux counts threads as
 * processes; elsewhere nothing changes.
 */
export function takePriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, nice)
  } catch {
    // A container without /proc, or a profile that forbids it: the threads share the processor evenly.
  }
}

/** Processor time of this thread and of the others of the process, ms. */
export function usedMs(): { readonly own: number; readonly others: number } {
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()].map(
    ({ user, system }) => (user + system) / 1_000,
  )
  return { own: own ?? 0, others: (all ?? 0) - (own ?? 0) }
}
