import { addCounts, countsOf } from '../../rollout/evidence/count-name.ts'
import type { KeptEvidence } from '../../rollout/evidence/read-kept.ts'
import { type BatchLimits, defaultBatchLimits } from '../../v2/index.ts'
import { listRecordings, readRecording } from '../recording/recording-files.ts'
import { type LearnedExchange, observeExchange } from './observe-exchange.ts'

/** The observations about V2's replies to a partner, each with the number of exchanges that showed it. */
export type Learned = ReadonlyMap<string, number>

/** Adds up the observations about one partner from all instances and stages. */
export function learnedOf(kept: readonly KeptEvidence[]): Learned {
  const learned = new Map<string, number>()
  for (const { counts } of kept)
    addCounts(
      learned,
      countsOf(counts, 'learned').map(({ fields: [name = ''], count }) => [name, count]),
    )
  return learned
}

/** Counts the observations in a folder of recordings. Throws the errors of `listRecordings` and `readRecording`. */
export async function learnRecordings(folder: string, key: Uint8Array): Promise<Learned> {
  const learned = new Map<string, number>()
  for (const one of await listRecordings(folder)) {
    const names = observeExchange(await readRecording(one, key), defaultBatchLimits)
    addCounts(
      learned,
      names.map((name) => [name, 1] as const),
    )
  }
  return learned
}

/** Of each partner, the first 100 exchanges are observed and then every hundredth, because later exchanges rarely show anything new. */
const ALL_UP_TO = 100
const LATER_EVERY = 100

/** Creates a function that returns the observations of an exchange, or an empty list if the exchange is not sampled. */
export function createLearning(limits: () => BatchLimits) {
  const offered = new Map<string, number>()
  return (partner: string, exchange: LearnedExchange): readonly string[] => {
    const before = offered.get(partner) ?? 0
    offered.set(partner, before + 1)
    return before < ALL_UP_TO || before % LATER_EVERY === 0 ? observeExchange(exchange, limits()) : []
  }
}
