import type { Clock } from '../clock.ts'
import type { Journal, RecordRef } from '../journal/index.ts'
import type { QueueKey } from '../upstream/index.ts'

export type PredecessorWatch = ReturnType<typeof createPredecessorWatch>

interface Waiter {
  readonly refs: Map<string, RecordRef>
  readonly finish: (inTime: boolean) => void
}

interface OlderQuery {
  readonly own: RecordRef
  readonly resolve: (older: RecordRef | undefined) => void
  readonly reject: (cause: unknown) => void
}

/** The interval in milliseconds at which the journal is polled for records that other instances have open. */
const POLL_MS = 200

/** Creates the watch that lets a request wait for older records of the same learner and event, or for another copy of its batch. */
export function createPredecessorWatch(journal: Pick<Journal, 'stillOpen' | 'olderOpen'>, clock: Clock) {
  const byName = new Map<string, Set<Waiter>>()
  let isPolling = false
  let isPollDue = false
  let cancelPoll: (() => void) | undefined

  const removeWaiter = (waiter: Waiter, name: string): void => {
    waiter.refs.delete(name)
    const others = byName.get(name)
    others?.delete(waiter)
    if (others?.size === 0) byName.delete(name)
  }
  const endWaits = (name: string): void => {
    for (const waiter of byName.get(name) ?? []) {
      removeWaiter(waiter, name)
      if (waiter.refs.size === 0) waiter.finish(true)
    }
  }
  const poll = async (): Promise<void> => {
    cancelPoll?.()
    cancelPoll = undefined
    // A poll in flight does not include the newest waiters, so another poll starts as soon as the poll in flight ends.
    isPollDue = isPolling
    if (isPolling || byName.size === 0) return
    isPolling = true
    const records = new Map([...byName.values()].flatMap((all) => [...all].flatMap(({ refs }) => [...refs])))
    try {
      const open = new Set((await journal.stillOpen([...records.values()])).map(recordId))
      for (const name of records.keys()) if (!open.has(name)) endWaits(name)
    } catch {
      // Ignores an unreachable journal, because the next poll tries again and each wait has its own timeout.
    }
    isPolling = false
    if (isPollDue) await poll()
    else if (byName.size > 0) cancelPoll = clock.after(POLL_MS, pollNow)
  }
  // Ignores a failed poll, because the next wait starts another poll.
  const pollNow = (): void => {
    poll().catch(() => undefined)
  }
  /** Starts one poll for all waits that begin at the same time. */
  const pollSoon = (): void => {
    if (isPollDue) return
    isPollDue = true
    queueMicrotask(pollNow)
  }
  let queries: OlderQuery[] = []
  /** Returns the nearest older record with the same key that is open, or `undefined` if there is none. Concurrent calls share one query. */
  const olderOf = (own: RecordRef): Promise<RecordRef | undefined> =>
    new Promise((resolve, reject) => {
      queries.push({ own, resolve, reject })
      if (queries.length > 1) return
      queueMicrotask(() => {
        const asked = queries
        queries = []
        journal.olderOpen(asked.map((question) => question.own)).then(
          (found) => {
            for (const [index, question] of asked.entries()) question.resolve(found[index])
          },
          (cause: unknown) => {
            for (const question of asked) question.reject(cause)
          },
        )
      })
    })
  const pause = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      clock.after(delayMs, resolve)
    })
  /** Resolves with true once none of the records is open, or with false after `timeoutMs`. Never rejects. */
  const until = (records: readonly RecordRef[], timeoutMs: number): Promise<boolean> =>
    new Promise((resolve) => {
      const waiter: Waiter = {
        refs: new Map(records.map((record) => [recordId(record), record])),
        finish: (inTime) => {
          cancel()
          for (const name of waiter.refs.keys()) removeWaiter(waiter, name)
          resolve(inTime)
        },
      }
      const cancel = clock.after(timeoutMs, () => {
        waiter.finish(false)
      })
      for (const name of waiter.refs.keys()) {
        const others = byName.get(name)
        if (others === undefined) byName.set(name, new Set([waiter]))
        else others.add(waiter)
      }
      pollSoon()
    })
  return {
    until,
    /**
     * Resolves with true once no older record with the key of `own` is open. Resolves with false after `timeoutMs`, also if the journal
     * could not be read until then. `older` lists the older records that are known. The function asks the journal for further older
     * records, because records do not end in order. Never rejects.
     */
    untilFirst: async (own: RecordRef, older: readonly RecordRef[], timeoutMs: number): Promise<boolean> => {
      const deadlineMs = clock.nowMs() + timeoutMs
      for (let known = older; ;) {
        const leftMs = deadlineMs - clock.nowMs()
        if (leftMs <= 0 || !(await until(known, leftMs))) return false
        try {
          const next = await olderOf(own)
          if (next === undefined) return true
          known = [next]
        } catch {
          // Repeats the query after a pause, because the journal cannot be reached.
          await pause(Math.min(POLL_MS, Math.max(0, deadlineMs - clock.nowMs())))
        }
      }
    },
    settled: (batch: number, positions: Iterable<number>): void => {
      if (byName.size === 0) return
      for (const position of positions) endWaits(recordId({ batch, position }))
    },
  }
}

function recordId({ batch, position }: RecordRef): string {
  return `${batch} ${position}`
}

/**
 * Longest time in milliseconds for which a batch with unverified credentials delays newer records of its keys. The request then withdraws
 * the unsent records of the batch.
 */
const GIVE_WAY_MS = 2_000

/**
 * Watches whether newer records wait for the open records of a batch. Returns `undefined` if the credentials of the batch were accepted
 * before.
 */
export function watchGiveWay(
  { journal, clock }: { readonly journal: Pick<Journal, 'blocking'>; readonly clock: Clock },
  batch: number,
  queueKey: QueueKey,
) {
  if (queueKey.isAccepted()) return undefined
  let cancel = (): void => undefined
  let isStopped = false
  const due = new Promise<void>((resolve, reject) => {
    const checkBlocked = async (): Promise<void> => {
      if (queueKey.isAccepted()) return
      const waiting = await journal.blocking([batch]).catch(() => [])
      if (isStopped || queueKey.isAccepted()) return
      if (waiting.length > 0) resolve()
      else wait()
    }
    const wait = (): void => {
      cancel = clock.after(GIVE_WAY_MS, () => {
        checkBlocked().catch(reject)
      })
    }
    wait()
  })
  return {
    /** Resolves at the first check that finds newer records waiting. Never resolves if the credentials are accepted first. */
    due,
    stop: (): void => {
      isStopped = true
      cancel()
    },
  }
}
