import { backgroundClock } from '../clock.ts'
import { createLiveLearning, type LiveLearning, noLearning } from '../compare/learn/index.ts'
import { fieldOf, type OfferedExchange } from '../compare/live/index.ts'
import type { RolloutStore } from '../rollout/index.ts'
import type { BatchLimits } from '../v2/index.ts'

/** Counts what V2's replies show of the interface of each partner; without a store nothing is kept. */
export function toLearning(
  store: Pick<RolloutStore, 'updateEvidence'> | undefined,
  limits: () => BatchLimits,
): LiveLearning {
  return store === undefined ? noLearning : createLiveLearning({ store, clock: backgroundClock, limits })
}

/** Shows an exchange that V2 served to the counts; any other says nothing of V2. */
export function learnFrom(learning: Pick<LiveLearning, 'observe'>, exchange: OfferedExchange): void {
  if (exchange.served !== 'v2' || exchange.reply === undefined) return
  const { reply, client } = exchange
  const isWrite = 'request' in exchange
  learning.observe(client.partner.id, {
    kind: isWrite ? exchange.kind : 'read',
    request: {
      contentType: isWrite ? exchange.request.contentType : undefined,
      accept: isWrite ? exchange.request.accept : exchange.accept,
      body: isWrite ? exchange.body : undefined,
    },
    reply: {
      status: reply.status,
      contentType: fieldOf(reply, 'content-type'),
      body: fieldOf(reply, 'content-encoding') === undefined ? reply.body : undefined,
    },
  })
}
