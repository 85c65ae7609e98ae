import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { describe, expect, it } from 'vitest'

import type { MainCalls, PostedEnd, PostedExchange } from '../../../src/app/background/calls.ts'
import { createBackgroundWork } from '../../../src/app/background/background-work.ts'
import { toPartners } from '../../../src/app/partners.ts'
import type {
  ComparedExchange,
  OfferedExchange,
  OfferedRead,
  OnCompared,
} from '../../../src/compare/live/exchange.ts'
import { packConfig, parseConfig } from '../../../src/config/index.ts'
import { AdapterError } from '../../../src/errors.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createAcceptedCredentials } from '../../../src/partners/credentials.ts'
import { createRegistry } from '../../../src/partners/registry.ts'
import { createRateLimits } from '../../../src/upstream/index.ts'
import { createManualClock } from '../../support/manual-clock.ts'

interface FakeThread {
  readonly main: MainCalls
  /** The names and arguments of the calls that the thread has received. */
  readonly got: (readonly unknown[])[]
  /** Answers up to `count` unanswered calls of one name, oldest first. */
  readonly answer: (name: string, count?: number, result?: unknown) => Promise<void>
  readonly end: (cause?: unknown) => Promise<void>
  isTerminated: boolean
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function fakeThread(main: MainCalls, onEnd: (cause: unknown) => void) {
  const waiting: { readonly name: string; readonly call: PromiseWithResolvers<never> }[] = []
  const got: FakeThread['got'] = []
  const thread: FakeThread = {
    main,
    got,
    answer: async (name, count = Infinity, result?) => {
      for (const one of waiting.filter((own) => own.name === name).slice(0, count)) {
        waiting.splice(waiting.indexOf(one), 1)
        one.call.resolve(result as never)
      }
      await turn()
    },
    end: async (cause) => {
      onEnd(cause)
      for (const { call } of waiting.splice(0)) call.reject(new AdapterError('ADP_INTERNAL', 'ended'))
      await turn()
    },
    isTerminated: false,
  }
  const call = (name: string, ...args: readonly unknown[]): Promise<never> => {
    const own = Promise.withResolvers<never>()
    got.push([name, ...args])
    waiting.push({ name, call: own })
    return own.promise
  }
  const terminate = (): Promise<void> => {
    thread.isTerminated = true
    return thread.end()
  }
  return { thread, started: { call, close: () => call('close'), terminate } }
}

function run(isBroken = false) {
  const clock = createManualClock()
  const metrics = createMetrics()
  const config = parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' }, v2: { baseUrl: 'http://127.0.0.1:2' } },
    partners: [{ id: 'acme', match: { any: true }, stage: 'shadow' }],
    journal: { url: 'sqlite:x.db' },
  })
  const partners = toPartners(config)
  const threads: FakeThread[] = []
  const errors: string[] = []
  const compared: ComparedExchange[] = []
  /** The exchanges that were added to the evidence or counted as missed. */
  const kept: string[] = []
  let onCompared: OnCompared = (exchange) => void compared.push(exchange)
  const background = createBackgroundWork({
    config,
    registry: createRegistry(partners),
    rateLimits: createRateLimits(clock),
    accepted: createAcceptedCredentials(),
    journal: {
      slotsOf: () => ({
        aloneSinceMs: () => undefined,
        reserve: () => Promise.resolve([0]),
        pauseFor: () => undefined,
        sincePauseMs: () => Promise.resolve(Infinity),
      }),
      evidence: {
        key: () => expect.fail(),
        add: (_scope, entry) => void kept.push(`added ${entry.check?.check ?? 'counts'}`),
        miss: (_scope, { check }) => void kept.push(`missed ${check}`),
        duties: [],
      },
    },
    metrics,
    events: {
      internalError: ({ errorName }) => errors.push(errorName),
      unmarkedCodesUnknown: () => undefined,
    },
    nowMs: Date.now,
    onCompared: (exchange) => onCompared(exchange),
    clock,
    startThread: (_start, main, onEnd) => {
      if (isBroken) throw new RangeError('no thread')
      const { thread, started } = fakeThread(main, onEnd)
      threads.push(thread)
      return started
    },
  })
  const counts = async (): Promise<Record<string, number>> => {
    const { text } = await metrics.render()
    const lines = [...text.matchAll(/^markbridge_compare_(\S+?)_total\{(\S*)\} (\S+)$/gm)]
    return Object.fromEntries(
      lines
        .map(([, name, labels = '', value]) => {
          const short = [...labels.matchAll(/(?:check|reason|verdict)="([^"]*)"/g)].map(([, one]) => one)
          return [[name, ...short].join(' '), Number(value)] as const
        })
        .filter(([, value]) => value > 0),
    )
  }
  const [partner] = partners
  if (partner === undefined) throw new Error('no partner')
  const identity = {
    owner: 'o',
    credentialsHash: 'h',
    isNamed: true,
    school: undefined,
    expiresMs: undefined,
  }
  const client = { partner, client: { authorization: 'a', subscriptionKey: 's' }, owner: 'o', identity }
  const read = (change: Partial<OfferedRead> = {}): OfferedExchange => ({
    ...{ client, stage: 'shadow', revision: 1, unit: 'north', receivedMs: 0, durationMs: 1 },
    ...{ kind: 'readFilter', served: 'v2', target: '/V2/x', request: { fields: [], body: undefined } },
    reply: { status: 200, reason: 'OK', fields: [], body: Buffer.from('{}') },
    ...change,
  })
  const observe = (own: OnCompared): void => {
    onCompared = own
  }
  const { comparison } = background
  return {
    ...{ background, comparison, config, clock, threads, errors, compared, kept },
    observe,
    counts,
    read,
    partner,
  }
}

describe('comparison in a background thread', () => {
  it('starts no thread before the first exchange is offered', () => {
    const { comparison, threads, read } = run()
    expect(threads).toHaveLength(0)
    comparison.offer(read())
    comparison.offer(read())
    expect(threads.map(({ got }) => got.map(([name, id]) => [name, id]))).toEqual([
      [
        ['compare', 1],
        ['compare', 2],
      ],
    ])
    const posted = threads[0]?.got[0]?.[3] as PostedExchange
    expect(posted.client).toMatchObject({ partner: 'acme', owner: 'o' })
  })

  it('counts the exchanges of a failed thread as missed, and starts another thread after a pause', async () => {
    const { comparison, clock, threads, errors, compared, counts, kept, read } = run()
    comparison.offer(read())
    comparison.offer(read())
    threads[0]?.main.note({ kind: 'begun', id: 1 })
    await threads[0]?.answer('compare', 1, all)
    await threads[0]?.end(new RangeError('heap'))
    expect(errors).toEqual(['RangeError'])
    expect(await counts()).toEqual({
      'offered answers': 2,
      'compared answers': 1,
      'skipped answers failed': 1,
    })

    comparison.offer(read())
    expect(await counts()).toMatchObject({ 'offered answers': 3, 'dropped answers failed': 1 })
    await clock.pass(10_000)
    comparison.offer(read())
    expect(threads).toHaveLength(2)
    // The failed thread missed the second exchange. The other missed exchange arrived while there was no thread.
    expect(kept).toEqual(['added answers', 'missed answers', 'missed answers'])
    expect(compared.map(({ records }) => records)).toEqual([[], []])
  })

  it('stores the counts of compared, skipped and missed exchanges for `compare learn`', async () => {
    const { comparison, threads, counts, kept, read } = run()
    comparison.offer(read())
    comparison.offer(read())
    await threads[0]?.answer('compare', 1, { ...all, learned: ['exchange/read'] })
    await threads[0]?.answer('compare', 1, { end: { kind: 'skipped', reason: 'pace' }, learned: [] })
    expect(await counts()).toEqual({
      'offered answers': 2,
      'compared answers': 1,
      'skipped answers pace': 1,
    })
    expect(kept).toEqual(['added answers', 'added counts', 'missed answers'])
  })

  it('doubles the pause before the next thread each time a thread ends immediately', async () => {
    const { comparison, clock, threads, read } = run()
    for (const waitMs of [10_000, 20_000, 40_000]) {
      comparison.offer(read())
      await threads.at(-1)?.end(new RangeError('no module'))
      const before = threads.length
      await clock.pass(waitMs - 1)
      comparison.offer(read())
      expect(threads).toHaveLength(before)
      await clock.pass(1)
    }
  })

  it('passes the configuration of a reload to the thread', () => {
    const { background, comparison, threads, read, config } = run()
    comparison.offer(read())
    background.reload(config)
    expect(threads[0]?.got.at(-1)).toEqual(['use', packConfig(config)])
  })

  it('reports an error of an observer, and the exchange still succeeds', async () => {
    const { comparison, threads, errors, read, observe } = run()
    observe(() => {
      throw new TypeError('observer')
    })
    for (let index = 0; index < 257; index += 1) comparison.offer(read())
    await threads[0]?.answer('compare', 1, { end: { ...end, exchange: comparedOf() }, learned: [] }) // prettier-ignore
    expect(errors).toEqual(['TypeError', 'TypeError'])
  })

  it('drops exchanges if no thread can be started', async () => {
    const { comparison, errors, counts, read, partner } = run(true)
    comparison.offer(read())
    comparison.onWrite(partner, 'shadow', () => ['key'])
    expect(await counts()).toEqual({ 'offered answers': 1, 'dropped answers failed': 1 })
    expect(errors).toEqual(['RangeError'])
  })

  it('drops exchanges beyond the maximum number that may wait', async () => {
    const { comparison, threads, counts, read } = run()
    for (let index = 0; index < 299; index += 1) comparison.offer(read())
    expect(await counts()).toEqual({ 'offered answers': 299, 'dropped answers full': 43 })
    for (let id = 1; id <= 10; id += 1) threads[0]?.main.note({ kind: 'begun', id })
    for (let index = 0; index < 20; index += 1) comparison.offer(read())
    expect(await counts()).toMatchObject({ 'offered answers': 319, 'dropped answers full': 53 })
  })

  it('drops exchanges beyond the maximum bytes that may wait', async () => {
    const { comparison, counts, read } = run()
    const body = Buffer.alloc(2_000_000)
    for (let index = 0; index < 20; index += 1)
      comparison.offer(read({ reply: { status: 200, reason: 'OK', fields: [], body } }))
    expect(await counts()).toEqual({ 'offered answers': 20, 'dropped answers full': 4 })
  })

  it('releases the bytes of an exchange once the thread has received it', async () => {
    const { comparison, threads, read } = run()
    const offer = (): WeakRef<Buffer> => {
      const body = Buffer.alloc(100_000)
      comparison.offer(read({ reply: { status: 200, reason: 'OK', fields: [], body } }))
      return new WeakRef(body)
    }
    const body = offer()
    threads[0]?.got.splice(0)
    await turn()
    setFlagsFromString('--expose-gc')
    runInNewContext('gc()')
    expect(body.deref()).toBeUndefined()
  })

  it('drops the learners and events of a write if the thread still registers those of earlier writes', async () => {
    const { comparison, threads, read, partner } = run()
    const keys = Array.from({ length: 20_000 }, (_, index) => `key ${index}`)
    const write = (stage: 'shadow' | 'legacy' = 'shadow') => comparison.onWrite(partner, stage, () => keys)
    const posted = () => threads[0]?.got.filter(([name]) => name === 'wrote').length ?? 0
    write()
    expect(threads).toHaveLength(0)
    comparison.offer(read())
    for (let index = 0; index < 5; index += 1) write()
    expect(posted()).toBe(2)
    await threads[0]?.answer('wrote', 1)
    write()
    write('legacy')
    expect(posted()).toBe(3)
  })

  it('makes no call to a service for five minutes after its 429, even if a new thread starts meanwhile', async () => {
    const { comparison, clock, threads, read, partner } = run()
    const client = { ...read().client, partner: 'acme' }
    comparison.offer(read())
    const ask = (side: 'v2' | 'v3') => threads.at(-1)?.main.acquire(client, side, 1_000)
    expect([await ask('v2'), await ask('v3')]).toEqual([undefined, undefined])
    comparison.onThrottled(partner, 'shadow')
    threads[0]?.main.note({ kind: 'called', client, side: 'v3', status: 429 })
    expect([await ask('v2'), await ask('v3')]).toEqual(['silence', 'silence'])
    await threads[0]?.end()
    await clock.pass(10_000)
    comparison.offer(read())
    expect([threads.length, await ask('v2')]).toEqual([2, 'silence'])
    await clock.pass(300_000)
    expect(await ask('v2')).toBeUndefined()
  })

  it('waits at most ten seconds for unfinished checks when the adapter closes', async () => {
    const first = run()
    first.comparison.offer(first.read())
    const closing = first.background.close()
    expect(first.threads[0]?.got.at(-1)).toEqual(['close'])
    await first.threads[0]?.answer('compare', 1, all)
    await first.threads[0]?.answer('close')
    await closing
    expect([first.threads[0]?.isTerminated, await first.counts()]).toEqual([
      true,
      { 'offered answers': 1, 'compared answers': 1 },
    ])

    const second = run()
    second.comparison.offer(second.read())
    const late = second.background.close()
    await second.clock.pass(10_000)
    await late
    expect([second.threads[0]?.isTerminated, second.errors]).toEqual([true, []])
    expect(await second.counts()).toEqual({ 'offered answers': 1, 'skipped answers stopped': 1 })
    second.comparison.offer(second.read())
    expect(await second.counts()).toMatchObject({ 'dropped answers closed': 1 })
  })
})

const end: PostedEnd = {
  kind: 'compared',
  seen: {
    ...{ partner: 'acme', check: 'answers', kind: 'readFilter' },
    ...{ verdicts: new Map(), differences: new Map(), delaysMs: [] },
  },
  evidence: { period: 1, entry: { counts: new Map(), pairs: [] } },
  exchange: undefined,
}

const all = { end, learned: [] }

const comparedOf = (): ComparedExchange => ({
  ...{ partner: 'acme', stage: 'shadow', revision: 1, served: 'v2', unit: 'north', kind: 'readFilter' },
  ...{ check: 'answers', receivedMs: 0, records: [], delaysMs: [] },
})
