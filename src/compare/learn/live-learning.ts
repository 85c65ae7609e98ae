import type { Clock } from '../../clock.ts'
import { createPeriodicTask } from '../../clock/periodic-task.ts'
import { AdapterError } from '../../errors.ts'
import type { HiddenOutcomes } from '../live/index.ts'
import type { RolloutStore } from '../../rollout/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import { addLearned, formatLearned, learnedName, parseLearned } from './learned.ts'
import { type LearnedExchange, observeExchange } from './observe-exchange.ts'

/** Counts what the replies of V2 show of each partner's interface. */
export interface LiveLearning {
  observe(partner: string, exchange: LearnedExchange): void
  /** Counts what became of batches whose replies do not show it. */
  readonly hidden: HiddenOutcomes
  start(): void
  /** Keeps what is left, and ends. */
  stop(): Promise<void>
}

export interface LiveLearningOptions {
  readonly store: Pick<RolloutStore, 'updateEvidence'>
  readonly clock: Pick<Clock, 'after'>
  readonly limits: () => BatchLimits
  /** Counts could not be kept, and wait in memory. Reported once until they can again. */
  readonly onFailure: (partner: string, code: string) => void
}

const EVERY_MS = 5_000
const STOP_MS = 1_000
/** Exchanges of a partner that are all observed; of later ones every hundredth, since they rarely show anything new. */
const ALL_UP_TO = 100
const LATER_EVERY = 100
/** Batches of a partner without outcomes whose marks are all read; each takes a few calls. */
const HIDDEN_UP_TO = 20

/** An adapter without a journal keeps nothing. */
export const noLearning: LiveLearning = {
  observe: () => undefined,
  hidden: { isWanted: () => false, found: () => undefined },
  start: () => undefined,
  stop: () => Promise.resolve(),
}

/** Creates the counts of one instance, which are added to those of all instances in the store. */
export function createLiveLearning({ store, clock, limits, onFailure }: LiveLearningOptions): LiveLearning {
  const offered = new Map<string, number>()
  const hidden = new Map<string, number>()
  const failing = new Set<string>()
  let waiting = new Map<string, Map<string, number>>()
  const waitingOf = (partner: string): Map<string, number> => {
    const counts = waiting.get(partner) ?? new Map<string, number>()
    waiting.set(partner, counts)
    return counts
  }
  const count = (partner: string, names: readonly string[]): void =>
    addLearned(
      waitingOf(partner),
      names.map((name) => [name, 1] as const),
    )
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
        failing.delete(partner)
      } catch (cause) {
        if (!failing.has(partner))
          onFailure(partner, cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL')
        failing.add(partner)
        // In memory until it can be kept: it is bounded.
        addLearned(waitingOf(partner), counts)
      }
    }
  }
  const keeping = createPeriodicTask({ clock, everyMs: EVERY_MS, stopMs: STOP_MS, act: keep })
  return {
    observe: (partner, exchange) => {
      if (takes(offered, partner, ALL_UP_TO)) count(partner, observeExchange(exchange, limits()))
    },
    hidden: {
      isWanted: (partner) => takes(hidden, partner, HIDDEN_UP_TO),
      found: (partner, outcome) => count(partner, [`mismatch/${outcome}`]),
    },
    start: () => keeping.start(),
    stop: () => keeping.stop(),
  }
}

/** Counts one more of the partner; true for all of the first, and for some of those that follow. */
function takes(counts: Map<string, number>, partner: string, allUpTo: number): boolean {
  const before = counts.get(partner) ?? 0
  counts.set(partner, before + 1)
  return before < allUpTo || before % LATER_EVERY === 0
}
