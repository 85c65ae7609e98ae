/** Holds work between the requests of clients and the comparison; each piece is worked on or given back, once. */
export interface OfferQueue<Item> {
  /** Never waits and never throws. False: there is no room. */
  offer(item: Item, bytes: number): boolean
  /** Pieces that wait. */
  waiting(): number
  /** Takes no more, gives back those that wait, and resolves once the one that is being worked on is done. */
  close(): Promise<readonly Item[]>
}

export interface OfferQueueOptions<Item> {
  /** Works on one piece; the next one follows when it has. Never rejects. */
  readonly work: (item: Item) => Promise<void>
  /** Resolves when the next piece may begin. */
  readonly begin: () => Promise<void>
}

/** The most that waits. */
export const offerBounds = { count: 256, bytes: 16_777_216 } as const

/** Creates the queue, bounded in number and in bytes. */
export function createOfferQueue<Item>({ work, begin }: OfferQueueOptions<Item>): OfferQueue<Item> {
  const waiting: { readonly item: Item; readonly bytes: number }[] = []
  let held = 0
  let isClosed = false
  let running: Promise<void> | undefined

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await begin()
      // Those that wait may have been given back meanwhile.
      const next = waiting.shift()
      if (next === undefined) break
      await work(next.item)
      held -= next.bytes
    }
    running = undefined
  }
  return {
    offer: (item, bytes) => {
      if (isClosed || waiting.length >= offerBounds.count || held + bytes > offerBounds.bytes) return false
      held += bytes
      waiting.push({ item, bytes })
      running ??= run()
      return true
    },
    waiting: () => waiting.length,
    close: async () => {
      isClosed = true
      const left = waiting.splice(0).map(({ item }) => item)
      await running
      return left
    },
  }
}
