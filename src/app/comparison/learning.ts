import { backgroundClock } from '../../clock.ts'
import { createLiveLearning, type LiveLearning, noLearning } from '../../compare/learn/index.ts'
import { fieldOf, type OfferedExchange } from '../../compare/live/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { Note } from './messages.ts'
import type { ThreadStores } from './thread-stores.ts'

/** Counts what V2's replies show of the interface of each partner; without a store nothing is kept. */
export function createLearning(
  store: ThreadStores['learned'] | undefined,
  limits: () => BatchLimits,
  note: (note: Note) => void,
): LiveLearning {
  if (store === undefined) return noLearning
  const onFailure = (partner: string, code: string): void =>
    note({ kind: 'learnedNotKept', event: { partner, code } })
  return createLiveLearning({ store, clock: backgroundClock, limits, onFailure })
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
      isGeneric: isWrite && exchange.isGeneric,
      body: isWrite ? exchange.body : undefined,
    },
    reply: {
      status: reply.status,
      contentType: fieldOf(reply, 'content-type'),
      body: fieldOf(reply, 'content-encoding') === undefined ? reply.body : undefined,
    },
  })
}
