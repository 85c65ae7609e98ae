import { addCounts, countsOf, type KeptEvidence } from '../../rollout/index.ts'
import { type BatchLimits, defaultBatchLimits } from '../../v2/index.ts'
import { isGeneric, listRecordings, readRecording } from '../recording/index.ts'
import { fieldOf } from '../wire-exchange.ts'
import { type LearnedExchange, observeExchange } from './observe-exchange.ts'

/** Names of counts, and in how many exchanges each was seen. */
export type Learned = ReadonlyMap<string, number>

/** What all instances have learned of a partner, at any stage. */
export function learnedOf(kept: readonly KeptEvidence[]): Learned {
  const learned = new Map<string, number>()
  for (const { counts } of kept)
    addCounts(
      learned,
      countsOf(counts, 'learned').map(({ fields: [name = ''], count }) => [name, count]),
    )
  return learned
}

/** Counts what recorded replies of V2 show; those for which V3 served are the adapter's own. `key` opens encrypted ones. Errors: those of `listRecordings` and `readRecording`. */
export async function learnRecordings(folder: string, key: Uint8Array | undefined): Promise<Learned> {
  const learned = new Map<string, number>()
  for (const one of await listRecordings(folder)) {
    const { exchange } = await readRecording(one, key)
    if (exchange.served === 'v3') continue
    const { kind, request, reply } = exchange
    const names = observeExchange(
      {
        kind: kind === 'batch' || kind === 'record' ? kind : 'read',
        request: {
          contentType: fieldOf(request, 'content-type'),
          isGeneric: isGeneric(exchange),
          body: request.body,
        },
        reply: {
          status: reply.status,
          contentType: fieldOf(reply, 'content-type'),
          body: reply.body,
        },
      },
      defaultBatchLimits,
    )
    addCounts(
      learned,
      names.map((name) => [name, 1] as const),
    )
  }
  return learned
}

/** Chooses which replies of V2 are looked at for what they show of each partner's interface. */
interface LiveLearning {
  /** What an exchange shows, as names of counts; empty where it is not looked at. */
  observe(partner: string, exchange: LearnedExchange): readonly string[]
  /** Whether it is worth its calls what became of one more batch whose reply does not say. */
  isHiddenWanted(partner: string): boolean
}

/** Exchanges of a partner that are all observed; of later ones every hundredth, since they rarely show anything new. */
const ALL_UP_TO = 100
const LATER_EVERY = 100
/** Batches of a partner without outcomes whose marks are all read; each takes a few calls. */
const HIDDEN_UP_TO = 20

export function createLearning(limits: () => BatchLimits): LiveLearning {
  const offered = new Map<string, number>()
  const hidden = new Map<string, number>()
  return {
    observe: (partner, exchange) =>
      takes(offered, partner, ALL_UP_TO) ? observeExchange(exchange, limits()) : [],
    isHiddenWanted: (partner) => takes(hidden, partner, HIDDEN_UP_TO),
  }
}

/** Counts one more of the partner; true for all of the first, and for some of those that follow. */
function takes(counts: Map<string, number>, partner: string, allUpTo: number): boolean {
  const before = counts.get(partner) ?? 0
  counts.set(partner, before + 1)
  return before < allUpTo || before % LATER_EVERY === 0
}
