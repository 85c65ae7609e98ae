import type { Clock } from '../../clock.ts'

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
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
  readonly clock: Clock
}

const MAX_WAITING = 256
const MAX_BYTES = 16_777_216
/** The rest of the time belongs to clients: after each piece of work the queue rests four times as long. */
const REST = 4
const MAX_REST_MS = 1_000

/** Creates the queue, bounded in number, in bytes, and in its share of the processor's time: a fifth. */
export function createOfferQueue<Item>({ work, later, clock }: OfferQueueOptions<Item>): OfferQueue<Item> {
  const waiting: { readonly item: Item; readonly bytes: number }[] = []
  let held = 0
  let isClosed = false
  let running: Promise<void> | undefined
  let wake = (): void => undefined

  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = clock.after(ms, resolve)
      wake = () => {
        cancel()
        resolve()
      }
      if (isClosed) wake()
    })
  const run = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const beganMs = clock.nowMs()
      await work(next.item)
      held -= next.bytes
      await rest(Math.min(MAX_REST_MS, REST * (clock.nowMs() - beganMs)))
    }
    running = undefined
  }
  return {
    offer: (item, bytes) => {
      if (isClosed || waiting.length >= MAX_WAITING || held + bytes > MAX_BYTES) return false
      held += bytes
      waiting.push({ item, bytes })
      // Not in the turn of the client's reply.
      running ??= new Promise<void>(later).then(run)
      return true
    },
    waiting: () => waiting.length,
    close: async () => {
      isClosed = true
      const left = waiting.splice(0).map(({ item }) => item)
      wake()
      await running
      return left
    },
  }
}
