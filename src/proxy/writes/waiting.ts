import type { Journal, RecordRef } from '../../journal/index.ts'
import type { Clock } from '../../v3/index.ts'

/** Waiting for records that others are sending. */
export interface Waiting {
  /** Resolves true once none of the records is open any longer, false when the time is spent first. Never rejects. */
  until(records: readonly RecordRef[], timeoutMs: number): Promise<boolean>
  /** Says that records were settled by this process: who waits looks again at once. */
  poke(): void
}

interface Waiter {
  readonly records: readonly RecordRef[]
  readonly resolve: (inTime: boolean) => void
}

/** How often the journal is asked for records of other instances. */
const POLL_MS = 200

/** Creates the place where requests wait for older records of the same learner and event, or for a batch's other sender. */
export function createWaiting(journal: Pick<Journal, 'stillOpen'>, clock: Clock): Waiting {
  const waiters = new Set<Waiter>()
  let looking = false
  let again = false
  let timer: (() => void) | undefined
  const finish = (waiter: Waiter, inTime: boolean): void => {
    if (waiters.delete(waiter)) waiter.resolve(inTime)
  }
  const ask = async (): Promise<void> => {
    const asked = [...waiters]
    const open = await journal.stillOpen(asked.flatMap(({ records }) => records))
    const names = new Set(open.map(nameOf))
    for (const waiter of asked)
      if (!waiter.records.some((record) => names.has(nameOf(record)))) finish(waiter, true)
  }
  const look = (): void => {
    if (looking) {
      again = true
      return
    }
    looking = true
    timer?.()
    timer = undefined
    // A journal that cannot be asked is asked again; those who wait have their own time limit.
    void ask()
      .catch(() => undefined)
      .finally(() => {
        looking = false
        if (again) {
          again = false
          look()
        } else if (waiters.size > 0) timer = clock.after(POLL_MS, look)
      })
  }
  return {
    until: (records, timeoutMs) =>
      new Promise((resolve) => {
        const cancel = clock.after(timeoutMs, () => {
          finish(waiter, false)
        })
        const waiter: Waiter = {
          records,
          resolve: (inTime) => {
            cancel()
            resolve(inTime)
          },
        }
        waiters.add(waiter)
        look()
      }),
    poke: () => {
      if (waiters.size > 0) look()
    },
  }
}

function nameOf({ batch, position }: RecordRef): string {
  return `${batch} ${position}`
}
