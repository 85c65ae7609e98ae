import { describe, expect, it } from 'vitest'

import { createShadowOffers, type OfferedExchange } from '../../../src/compare/live/index.ts'
import { partner } from '../../partners/partner.ts'

const read = (size: number): OfferedExchange => ({
  kind: 'readKey',
  query: '',
  partner: partner('acme', { any: true }),
  receivedMs: 0,
  durationMs: 1,
  reply: { status: 200, fields: [], body: Buffer.alloc(size) },
})

function createQueue(listen: (exchange: OfferedExchange) => Promise<void>) {
  const fates: string[] = []
  const failures: unknown[] = []
  const queue = createShadowOffers({
    listen,
    onOffer: (_partner, fate) => fates.push(fate),
    onFailed: (cause) => failures.push(cause),
    later: (act) => setImmediate(act),
  })
  return { queue, fates, failures }
}

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('what is offered at shadow', () => {
  it('is taken or dropped, and never waited for: a listener that hangs fills the queue and no more', async () => {
    const { queue, fates } = createQueue(() => new Promise(() => undefined))
    for (let count = 0; count < 1_000; count += 1) queue.offer(read(10))
    await turns(3)
    const taken = fates.filter((fate) => fate === 'taken').length
    expect([taken, fates.filter((fate) => fate === 'full').length]).toEqual([256, 744])
    expect(fates).toHaveLength(1_000)
  })

  it('is bounded in bytes, which are free again once an exchange was read', async () => {
    const { queue, fates } = createQueue(() => Promise.resolve())
    const large = read(9_000_000)
    queue.offer(large)
    queue.offer(large)
    expect(fates).toEqual(['taken', 'full'])
    await turns(5)
    queue.offer(large)
    expect(fates).toEqual(['taken', 'full', 'taken'])
    await queue.close()
  })

  it('goes on after a listener that fails', async () => {
    const seen: number[] = []
    const { queue, failures } = createQueue((exchange) => {
      seen.push(exchange.reply.body?.length ?? 0)
      return seen.length === 1 ? Promise.reject(new Error('synthetic')) : Promise.resolve()
    })
    queue.offer(read(1))
    queue.offer(read(2))
    await turns(8)
    expect([seen, failures.length]).toEqual([[1, 2], 1])
  })

  it('is not read in the turn of the offer, and not after the end', async () => {
    const seen: unknown[] = []
    const { queue, fates } = createQueue((exchange) => {
      seen.push(exchange)
      return Promise.resolve()
    })
    queue.offer(read(1))
    expect(seen).toEqual([])
    await queue.close()
    queue.offer(read(1))
    expect([seen.length, fates]).toEqual([0, ['taken', 'closed']])
  })
})
