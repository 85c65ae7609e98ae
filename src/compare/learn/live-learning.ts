import type { Clock } from '../../clock.ts'
import type { RolloutStore } from '../../rollout/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import { addLearned, formatLearned, learnedName, parseLearned } from './learned.ts'
import { type LearnedExchange, observeExchange } from './observe-exchange.ts'

/** Counts what the replies of V2 show of each partner's interface. */
export interface LiveLearning {
  observe(partner: string, exchange: LearnedExchange): void
  start(): void
  /** Keeps what is left, and ends. */
  stop(): Promise<void>
}

export interface LiveLearningOptions {
  readonly store: Pick<RolloutStore, 'updateEvidence'>
  readonly clock: Pick<Clock, 'after'>
  readonly limits: () => BatchLimits
}

const EVERY_MS = 5_000
const STOP_MS = 1_000
/** Exchanges of a partner that are all observed; of later ones every hundredth, since they rarely show anything new. */
const ALL_UP_TO = 1_000
const LATER_EVERY = 100

/** An adapter without a journal keeps nothing. */
export const noLearning: LiveLearning = {
  observe: () => undefined,
  start: () => undefined,
  stop: () => Promise.resolve(),
}

/** Creates the counts of one instance, which are added to those of all instances in the store. */
export function createLiveLearning({ store, clock, limits }: LiveLearningOptions): LiveLearning {
  const offered = new Map<string, number>()
  let waiting = new Map<string, Map<string, number>>()
  const waitingOf = (partner: string): Map<string, number> => {
    const counts = waiting.get(partner) ?? new Map<string, number>()
    waiting.set(partner, counts)
    return counts
  }
  const keep = async (): Promise<void> => {
    const taken = waiting
    waiting = new Map()
    for (const [partner, counts] of taken) {
      try {
        await store.updateEvidence(learnedName(partner), (text) => {
          const sum = new Map(parseLearned(text))
          addLearned(sum, counts)
          return formatLearned(sum)
        })
      } catch {
        // Kept in memory until the journal can be written: it is bounded, and a journal that fails is reported elsewhere.
        addLearned(waitingOf(partner), counts)
      }
    }
  }
  let cancel = (): void => undefined
  let running = Promise.resolve()
  const schedule = (): void => {
    cancel = clock.after(EVERY_MS, () => {
      running = keep().finally(schedule)
    })
  }
  return {
    observe: (partner, exchange) => {
      const count = offered.get(partner) ?? 0
      offered.set(partner, count + 1)
      if (count >= ALL_UP_TO && count % LATER_EVERY !== 0) return
      const names = observeExchange(exchange, limits())
      addLearned(
        waitingOf(partner),
        names.map((name) => [name, 1] as const),
      )
    },
    start: schedule,
    stop: async () => {
      cancel()
      const kept = running.then(() => {
        cancel()
        return keep()
      })
      // A journal that does not answer must not keep the process from its end.
      let stopWaiting = (): void => undefined
      const waited = new Promise<void>((resolve) => {
        stopWaiting = clock.after(STOP_MS, resolve)
      })
      await Promise.race([kept, waited])
      stopWaiting()
    },
  }
}
