import { describe, expect, it } from 'vitest'

import { type CallLimit, createRateLimit, type QueueKey, type RateSlots } from '../../src/upstream/index.ts'
import { createManualClock } from '../support/manual-clock.ts'

/** Creates a rate limit with rate slots. Each reservation gets the next of `answers`. */
function start(
  callsPerSecond: number,
  answers: (readonly number[] | undefined)[],
  pauses: (number | undefined)[] = [],
  isConfigured?: boolean,
) {
  const clock = createManualClock()
  const asked: [limit: CallLimit, calls: number][] = []
  const held: number[] = []
  /** The time since which this instance has been the only live instance, or `undefined` if it is not. */
  const alone: { sinceMs: number | undefined } = { sinceMs: undefined }
  const slots: RateSlots = {
    aloneSinceMs: () => alone.sinceMs,
    reserve: (limit, calls) => {
      asked.push([limit, calls])
      return Promise.resolve(answers.shift())
    },
    pauseFor: (ms) => held.push(ms),
    sincePauseMs: () => Promise.resolve(pauses.shift()),
  }
  const rateLimit = createRateLimit({
    callsPerSecond,
    clock,
    slots,
    ...(isConfigured === undefined ? {} : { isConfigured }),
  })
  const log: [name: string, atMs: number][] = []
  const ask = (name: string, deadlineMs = Infinity, queueKey?: QueueKey): void => {
    void rateLimit.acquire('write', deadlineMs, queueKey).then((admission) => {
      log.push([admission.admitted ? name : `${name} ${admission.reason}`, clock.nowMs()])
    })
  }
  return { clock, rateLimit, asked, held, alone, log, ask }
}

describe('createRateLimit, for a subscription key that a client sent', () => {
  it('reserves rate slots in the journal only after V3 has accepted a client with the key', async () => {
    const { clock, rateLimit, asked, held, log, ask } = start(2, [[0]], [undefined], false)
    let isAccepted = false
    const client = { partner: 'any', owner: 'client', isAccepted: () => isAccepted }
    for (const name of ['a', 'b', 'c']) ask(name, Infinity, client)
    rateLimit.pauseFor(10)
    expect(await rateLimit.sincePauseMs()).toBe(0)
    await clock.pass(100)
    expect(log).toEqual([['a', 0], ['b', 0]]) // prettier-ignore
    expect([asked, held]).toEqual([[], []])
    // The waiting call now belongs to an accepted client.
    isAccepted = true
    await clock.pass(1_000)
    expect(log.at(-1)).toEqual(['c', 1_050])
    expect(asked).toEqual([[{ calls: 2, windowMs: 1_150 }, 1]])
    rateLimit.pauseFor(20)
    expect(held).toEqual([20])
  })
})

describe('createRateLimit, with rate slots that instances share', () => {
  it('reserves slots only while calls wait, for a quarter of a rate window at a time', async () => {
    const { clock, asked, log, ask } = start(8, [[0], [0, 300], [400]]) // prettier-ignore
    await clock.pass(10)
    expect(asked).toEqual([])
    for (const name of ['a', 'b', 'c', 'd']) ask(name)
    await clock.pass(1_000)
    expect(log).toEqual([['a', 10], ['b', 10], ['c', 310], ['d', 710]]) // prettier-ignore
    const limit = { calls: 8, windowMs: 1_150 }
    expect(asked).toEqual([[limit, 1], [limit, 2], [limit, 1]]) // prettier-ignore
  })

  it('gives a slot to the call that is first in the queue when the slot becomes available', async () => {
    const { clock, log, ask, rateLimit } = start(4, [[500]])
    ask('gone', 400)
    await clock.pass(100)
    ask('stays')
    await clock.pass(1_000)
    expect(log).toEqual([['gone deadline', 400], ['stays', 500]]) // prettier-ignore
    expect(rateLimit.waiting('write')).toBe(0)
  })

  it('lets a slot expire if no call uses the slot in time', async () => {
    const { clock, log, ask, asked } = start(4, [[500], [200]])
    ask('gone', 400)
    await clock.pass(651)
    ask('late')
    await clock.pass(1_000)
    expect(log).toEqual([['gone deadline', 400], ['late', 851]]) // prettier-ignore
    expect(asked).toHaveLength(2)
  })

  it("applies the instance's own limit while the store cannot be reached", async () => {
    const { clock, log, ask } = start(2, [])
    for (const name of ['a', 'b', 'c']) ask(name)
    await clock.pass(3_000)
    expect(log).toEqual([['a', 0], ['b', 0], ['c', 1_050]]) // prettier-ignore
  })

  it('pauses the calls of all instances after a 429', async () => {
    const { clock, log, ask, held, rateLimit } = start(4, [[0], [0]])
    rateLimit.pauseFor(2_000)
    ask('a')
    await clock.pass(3_000)
    expect(held).toEqual([2_000])
    expect(log).toEqual([['a', 2_000]])
  })

  it('reports when the last pause of any instance ended, and queries the store at most once a second', async () => {
    const { clock, rateLimit } = start(4, [], [undefined, Infinity, 30_000, -500])
    const since: (number | undefined)[] = []
    const look = async (): Promise<void> => void since.push(await rateLimit.sincePauseMs())
    await look()
    await look()
    await clock.pass(999)
    await look()
    await clock.pass(1)
    await look()
    await clock.pass(100)
    rateLimit.pauseFor(2_000)
    await look()
    await clock.pass(1_000)
    await look()
    expect(since).toEqual([undefined, Infinity, Infinity, 30_000, 0, -500])
  })
})

describe('an instance that is the only live instance', () => {
  it('makes one last reservation after a whole rate window without other instances, and then uses its own rate limit', async () => {
    const { clock, asked, alone, log, ask } = start(2, [[0], [0]])
    alone.sinceMs = 0
    await clock.pass(1_149)
    ask('within the window')
    await clock.pass(1)
    ask('last reservation')
    await clock.pass(10)
    ask('own limit')
    await clock.pass(3_000)
    ask('own limit again')
    await clock.pass(0)
    expect(asked).toHaveLength(2)
    expect(log).toEqual([
      ['within the window', 1_149], ['last reservation', 1_150], ['own limit', 2_199], ['own limit again', 4_160],
    ]) // prettier-ignore
  })

  it('sends no call during the slots and pauses that ended instances had reserved', async () => {
    const { clock, asked, alone, log, ask } = start(4, [[30_000]])
    alone.sinceMs = 0
    await clock.pass(2_000)
    ask('gone', 1_000)
    await clock.pass(1_500)
    ask('stays')
    await clock.pass(30_000)
    ask('later')
    await clock.pass(0)
    expect(log).toEqual([['gone deadline', 3_000], ['stays', 32_000], ['later', 33_500]]) // prettier-ignore
    expect(asked).toHaveLength(1)
  })

  it('reserves rate slots again while another instance may be alive', async () => {
    const { clock, asked, alone, log, ask } = start(10, [[0], [700], [0], [0]])
    alone.sinceMs = 0
    await clock.pass(2_000)
    ask('last reservation')
    await clock.pass(1)
    alone.sinceMs = undefined
    ask('shared')
    await clock.pass(1_000)
    alone.sinceMs = 3_000
    ask('within the window')
    await clock.pass(2_000)
    for (const name of ['last reservation', 'own limit', 'own limit']) {
      ask(name)
      await clock.pass(0)
    }
    expect(log).toEqual([
      ['last reservation', 2_000], ['shared', 2_701], ['within the window', 3_001],
      ['last reservation', 5_001], ['own limit', 5_001], ['own limit', 5_001],
    ]) // prettier-ignore
    expect(asked).toHaveLength(4)
  })

  it('repeats its last reservation of rate slots if the store could not be reached', async () => {
    const { clock, asked, alone, ask } = start(10, [undefined, [0]])
    alone.sinceMs = 0
    await clock.pass(2_000)
    for (const name of ['a', 'b', 'c']) {
      ask(name)
      await clock.pass(0)
    }
    expect(asked).toHaveLength(2)
  })
})
