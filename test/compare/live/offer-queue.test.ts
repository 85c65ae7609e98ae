import { describe, expect, it } from 'vitest'

import { createOfferQueue } from '../../../src/compare/live/offer-queue.ts'
import { createManualClock } from '../../support/manual-clock.ts'

function createQueue(work: (item: string) => Promise<void>) {
  const clock = createManualClock()
  return { clock, queue: createOfferQueue<string>({ work, later: (act) => setImmediate(act), clock }) }
}

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('the queue of offers', () => {
  it('is bounded in number: work that hangs fills it and no more', async () => {
    const { queue } = createQueue(() => new Promise(() => undefined))
    const taken = Array.from({ length: 1_000 }, (_, index) => queue.offer(String(index), 10)).filter(Boolean)
    await turns(3)
    expect(taken).toHaveLength(256)
    expect(queue.waiting()).toBe(255)
  })

  it('is bounded in bytes, which are free again once a piece was worked on', async () => {
    const { queue } = createQueue(() => Promise.resolve())
    expect([queue.offer('a', 9_000_000), queue.offer('b', 9_000_000)]).toEqual([true, false])
    await turns(5)
    expect(queue.offer('c', 9_000_000)).toBe(true)
    await queue.close()
  })

  it('rests four times as long as it has worked, so that a fifth of the time is its own', async () => {
    const begun: number[] = []
    const { queue, clock } = createQueue(async () => {
      begun.push(clock.nowMs())
      await clock.pass(20)
    })
    queue.offer('a', 1)
    queue.offer('b', 1)
    await turns(5)
    await clock.pass(79)
    await turns(5)
    expect(begun).toEqual([0])
    await clock.pass(1)
    await turns(5)
    expect(begun).toEqual([0, 100])
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
    await turns(3)
    const closed = queue.close()
    end()
    expect(await closed).toEqual(['b', 'c'])
    expect([seen, queue.offer('d', 1)]).toEqual([['a'], false])
  })
})
