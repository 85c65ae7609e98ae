import { describe, expect, it } from 'vitest'

import { createOfferQueue } from '../../../src/compare/live/offer-queue.ts'

const begin = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const createQueue = (work: (item: string) => Promise<void>) => ({
  queue: createOfferQueue<string>({ work, begin }),
})

const pass = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('the queue of offers', () => {
  it('is bounded in number: work that hangs fills it and no more', async () => {
    const { queue } = createQueue(() => new Promise(() => undefined))
    const taken = Array.from({ length: 1_000 }, (_, index) => queue.offer(String(index), 10)).filter(Boolean)
    await pass(3)
    expect(taken).toHaveLength(256)
    expect(queue.waiting()).toBe(255)
  })

  it('is bounded in bytes, which are free again once a piece was worked on', async () => {
    const { queue } = createQueue(() => Promise.resolve())
    expect([queue.offer('a', 9_000_000), queue.offer('b', 9_000_000)]).toEqual([true, false])
    await pass(5)
    expect(queue.offer('c', 9_000_000)).toBe(true)
    await queue.close()
  })

  it('does not work in the turn of the offer, gives back what waits at the end, and takes no more', async () => {
    const seen: string[] = []
    let end = (): void => undefined
    const { queue } = createQueue((item) => {
      seen.push(item)
      return new Promise((resolve) => (end = resolve))
    })
    for (const item of ['a', 'b', 'c']) queue.offer(item, 1)
    expect(seen).toEqual([])
    await pass(3)
    const closed = queue.close()
    end()
    expect(await closed).toEqual(['b', 'c'])
    expect([seen, queue.offer('d', 1)]).toEqual([['a'], false])
  })
})
