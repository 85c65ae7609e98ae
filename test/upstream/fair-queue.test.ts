import { describe, expect, it } from 'vitest'

import { FairQueue, NEWCOMERS, type QueueKey, type Refusal } from '../../src/upstream/fair-queue.ts'
import { createManualClock } from '../support/manual-clock.ts'

/** Returns the key of an owner: `p1/x` is owner x of partner p1. A `?` at the end marks an owner that V3 has not accepted yet. */
function keyOf(owner: string, accepted: ReadonlySet<string>): QueueKey {
  const isAccepted = (): boolean => !owner.endsWith('?') || accepted.has(owner)
  return { partner: owner.split('/')[0] ?? '', owner, isAccepted }
}

/** Creates a queue that serves no call until the test calls `serve`. Calls are named `owner number`. */
function start({ maxWaiting = 10_000 } = {}) {
  const accepted = new Set<string>()
  const supply = { left: 0, mayServe: (holder: string): boolean => holder !== 'nobody' }
  const clock = createManualClock()
  const queue = new FairQueue(
    { mayTake: (holder) => supply.left > 0 && supply.mayServe(holder), take: () => (supply.left -= 1) },
    clock,
    maxWaiting,
  )
  const served: string[] = []
  const enter = (name: string, waitMs?: number, signal?: AbortSignal): void => {
    const refuse = (reason: Refusal): void => void served.push(`${name} ${reason}`)
    const queueKey = keyOf(name.split(' ')[0] ?? '', accepted)
    queue.enter({
      queueKey,
      priority: 'write',
      waitMs,
      signal: signal && (() => signal),
      admit: () => served.push(name),
      refuse,
    })
  }
  /** Returns the calls that are served with this additional supply. */
  const serve = (count = Infinity, mayServe: (holder: string) => boolean = () => true): string[] => {
    Object.assign(supply, { left: count, mayServe })
    served.length = 0
    queue.serve()
    supply.left = 0
    return [...served]
  }
  return { queue, enter, serve, accepted, clock, served }
}

describe('a fair queue', () => {
  it('serves partners in turn, the owners of a partner in turn, and the calls of an owner in order', () => {
    const { queue, enter, serve } = start()
    for (const name of ['a/x 1', 'a/x 2', 'a/x 3', 'a/y 1', 'b/z 1', 'b/z 2']) enter(name)
    expect(serve()).toEqual(['a/x 1', 'b/z 1', 'a/y 1', 'b/z 2', 'a/x 2', 'a/x 3'])
    expect(queue.size).toBe(0)
  })

  it('gives all owners that V3 has not accepted one turn in common', () => {
    const { enter, serve } = start()
    for (let index = 0; index < 5; index += 1) enter(`a/${index}? 1`)
    for (const name of ['a/x 1', 'a/x 2']) enter(name)
    expect(serve()).toEqual([
      'a/0? 1', 'a/x 1', 'a/1? 1', 'a/x 2', 'a/2? 1', 'a/3? 1', 'a/4? 1',
    ]) // prettier-ignore
  })

  it('skips owners that may not be served, and keeps their places in the queue', () => {
    const { enter, serve } = start()
    for (const name of ['a/x 1', 'a/y 1', 'a/0? 1']) enter(name)
    expect(serve(9, (holder) => holder === 'a/y')).toEqual(['a/y 1'])
    expect(serve(9, (holder) => holder === NEWCOMERS)).toEqual(['a/0? 1'])
    expect(serve()).toEqual(['a/x 1'])
  })

  it("moves the calls of an owner, in order, from the common turn to the owner's partner when V3 accepts the owner", () => {
    const { queue, enter, serve, accepted } = start()
    for (const name of ['a/0? 1', 'a/1? 1', 'a/1? 2']) enter(name)
    accepted.add('a/1?')
    enter('a/1? 3')
    expect(serve(9, (holder) => holder !== NEWCOMERS)).toEqual(['a/1? 1', 'a/1? 2', 'a/1? 3'])
    expect(queue.size).toBe(1)
  })

  it('keeps the order of many calls of one owner while calls are added and served', () => {
    const { enter, serve } = start()
    const [entered, served]: [string[], string[]] = [[], []]
    for (let index = 0; index < 1_000; index += 1) {
      entered.push(`a/x ${index}`)
      enter(`a/x ${index}`)
      if (index % 3 > 0) served.push(...serve(1))
    }
    expect([...served, ...serve()]).toEqual(entered)
  })

  it('removes calls that expired or whose caller disconnected, even if V3 has accepted their owner meanwhile', async () => {
    const { queue, enter, serve, accepted, clock, served } = start()
    const gone = new AbortController()
    enter('a/x 1', 100)
    enter('a/2? 1', 1_000, gone.signal)
    enter('a/x 2')
    accepted.add('a/2?')
    await clock.pass(100)
    gone.abort()
    await clock.pass(10_000)
    expect(served).toEqual(['a/x 1 deadline', 'a/2? 1 gone'])
    expect([queue.size, serve()]).toEqual([1, ['a/x 2']])
  })

  it('limits the number of waiting calls that have a time limit', () => {
    const { enter, served } = start({ maxWaiting: 2 })
    for (const name of ['a/x 1', 'a/x 2', 'a/x 3']) enter(name, 100)
    enter('a/y 1', 0)
    enter('a/y 2')
    expect(served).toEqual(['a/x 3 full', 'a/y 1 deadline'])
  })
})
