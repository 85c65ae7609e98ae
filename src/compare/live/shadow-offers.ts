import { type OfferedExchange, sizeOf } from './offered-exchange.ts'

/** Takes what V2 served at `shadow`; offered = taken + dropped. */
export interface ShadowOffers {
  /** Never waits and never throws: what finds no room is dropped. */
  offer(exchange: OfferedExchange): void
  /** Takes no more; resolves once the exchange that is being read has been. */
  close(): Promise<void>
}

/** Called once for each offer. */
export type OnOffer = (partner: string, fate: 'taken' | 'full' | 'closed') => void

export interface ShadowOffersOptions {
  /** Reads one exchange; the next one follows when it has. */
  readonly listen: (exchange: OfferedExchange) => Promise<void>
  readonly onOffer: OnOffer
  /** Called with what `listen` rejects with. */
  readonly onFailed: (cause: unknown) => void
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
}

const MAX_WAITING = 256
const MAX_BYTES = 16_777_216

/** Creates the queue between the clients of V2 and the listener, bounded in number and bytes. */
export function createShadowOffers({ listen, onOffer, onFailed, later }: ShadowOffersOptions): ShadowOffers {
  const waiting: OfferedExchange[] = []
  let bytes = 0
  let isClosed = false
  let running: Promise<void> | undefined

  const run = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await listen(next)
      } catch (cause) {
        onFailed(cause)
      }
      bytes -= sizeOf(next)
      await new Promise<void>(later)
    }
    running = undefined
  }
  return {
    offer: (exchange) => {
      const size = sizeOf(exchange)
      const { id } = exchange.partner
      if (isClosed) onOffer(id, 'closed')
      else if (waiting.length >= MAX_WAITING || bytes + size > MAX_BYTES) onOffer(id, 'full')
      else {
        onOffer(id, 'taken')
        bytes += size
        waiting.push(exchange)
        // Not in the turn of the client's reply.
        running ??= new Promise<void>(later).then(run)
      }
    },
    close: async () => {
      isClosed = true
      waiting.length = 0
      await running
    },
  }
}
