/** Checks that wait for another side. They hold no place of a client's. */
export interface JobPool {
  /** Runs a job, which never rejects. False: too many of the partner's are under way, or they hold too much memory. */
  run(partner: string, bytes: number, job: () => Promise<void>): boolean
  /** Jobs under way. */
  count(): number
  /** Resolves once no job is under way. */
  idle(): Promise<void>
}

const MAX_JOBS = 128
const MAX_BYTES = 16_777_216

/** Creates the pool, bounded in jobs per partner and in bytes. */
export function createJobPool(): JobPool {
  const counts = new Map<string, number>()
  const running = new Set<Promise<void>>()
  let held = 0
  return {
    run: (partner, bytes, job) => {
      const count = counts.get(partner) ?? 0
      if (count >= MAX_JOBS || held + bytes > MAX_BYTES) return false
      counts.set(partner, count + 1)
      held += bytes
      const done = job().finally(() => {
        counts.set(partner, (counts.get(partner) ?? 1) - 1)
        held -= bytes
        running.delete(done)
      })
      running.add(done)
      return true
    },
    count: () => running.size,
    idle: async () => {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
