import { setImmediate as turn } from 'node:timers/promises'

import { describe, expect, it } from 'vitest'

import type { FromThread, Note, ThreadStart, ToThread } from '../../../src/app/comparison/messages.ts'
import { type ReloadableComparison, toComparison } from '../../../src/app/comparison/to-comparison.ts'
import { defaultBatchLimits } from '../../../src/v2/index.ts'
import { toPartners } from '../../../src/app/partners.ts'
import type { ComparedExchange, OnCompared } from '../../../src/compare/compared-exchange.ts'
import type { OfferedExchange, OfferedRead } from '../../../src/compare/live/offered-exchange.ts'
import { type Config, parseConfig } from '../../../src/config/index.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createAcceptedCredentials, createRegistry } from '../../../src/partners/index.ts'
import { createRateLimits } from '../../../src/upstream/index.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'

interface FakeThread {
  readonly start: ThreadStart
  readonly got: ToThread[]
  readonly say: (message: FromThread) => void
  readonly note: (...notes: Note[]) => void
  readonly end: (cause?: unknown) => void
  isTerminated: boolean
}

interface Running {
  readonly comparison: ReloadableComparison
  readonly config: Config
  readonly clock: ManualClock
  readonly observe: (own: OnCompared) => void
  readonly threads: FakeThread[]
  readonly errors: string[]
  readonly compared: ComparedExchange[]
  /** Values of the metrics of comparisons, without those of zero. */
  readonly counts: () => Promise<Record<string, number>>
  readonly read: (change?: Partial<OfferedRead>) => OfferedExchange
}

/** A comparison whose threads are played by the test. */
function run(isBroken = false): Running {
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
  let onCompared: OnCompared = (exchange) => void compared.push(exchange)
  const comparison = toComparison({
    config,
    limits: () => ({ ...defaultBatchLimits, ...config.limits }),
    registry: createRegistry(partners),
    rateLimits: createRateLimits(clock),
    accepted: createAcceptedCredentials(),
    journal: undefined,
    metrics,
    events: {
      internalError: ({ errorName }) => errors.push(errorName),
      unmarkedCodesUnknown: () => undefined,
      learnedNotKept: () => undefined,
      evidenceNotKept: () => undefined,
    },
    nowMs: Date.now,
    onCompared: (exchange) => onCompared(exchange),
    clock,
    startThread: (start, onMessage, onEnd) => {
      if (isBroken) throw new RangeError('no thread')
      const thread: FakeThread = {
        start,
        got: [],
        say: onMessage,
        note: (...notes) => onMessage({ kind: 'notes', notes }),
        end: onEnd,
        isTerminated: false,
      }
      threads.push(thread)
      return {
        post: (message) => thread.got.push(message),
        close: () => thread.got.push({ kind: 'close' }),
        terminate: async () => {
          thread.isTerminated = true
          await turn()
          onEnd(undefined)
        },
      }
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
    ...{ client, stage: 'shadow', revision: 1, unit: 'north', receivedMs: 0, repliedMs: 1 },
    ...{ kind: 'readFilter', served: 'v2', path: '/V2/x', query: '', accept: '', prefer: '' },
    reply: { status: 200, fields: [], body: Buffer.from('{}') },
    ...change,
  })
  const observe = (own: OnCompared): void => {
    onCompared = own
  }
  return { comparison, config, clock, threads, errors, compared, observe, counts, read }
}

describe('comparison in a thread', () => {
  it('starts no thread before the first exchange', () => {
    const { comparison, threads, read } = run()
    expect(threads).toHaveLength(0)
    comparison.offer(read())
    comparison.offer(read())
    expect(threads.map(({ got }) => got.map(({ kind }) => kind))).toEqual([['offer', 'offer']])
  })

  it('hands over bytes of its own', () => {
    const { comparison, threads, read } = run()
    const body = Buffer.from('{"value":[]}')
    comparison.offer(read({ reply: { status: 200, fields: [], body } }))
    body.fill(0)
    const [message] = threads[0]?.got ?? []
    const exchange = message?.kind === 'offer' ? message.exchange : undefined
    expect(exchange).toMatchObject({ client: { partner: 'acme' } })
    expect(exchange && 'reply' in exchange && exchange.reply?.body?.toString()).toBe('{"value":[]}')
  })

  it('ends what a thread that failed had begun, counts it as missed, and starts the next one after a pause', async () => {
    const { comparison, clock, threads, errors, compared, counts, read } = run()
    comparison.offer(read())
    comparison.offer(read())
    threads[0]?.note({ kind: 'begun', id: 1 }, endOf(1))
    threads[0]?.end(new RangeError('heap'))
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
    threads[1]?.note({ kind: 'begun', id: 3 })
    // With the one whose evidence was still in memory.
    expect(threads[1]?.got.at(-1)).toMatchObject({
      kind: 'missed',
      missed: [{ check: 'answers', times: 3, exchange: { partner: 'acme', kind: 'readFilter' } }],
    })
    // The second of the first thread, and the one without a thread.
    expect(compared.map(({ records }) => records)).toEqual([[], []])
  })

  it('counts nothing as missed whose evidence was kept', async () => {
    const { comparison, clock, threads, read } = run()
    comparison.offer(read())
    const exchange = { partner: 'acme', stage: 'shadow', revision: 1, served: 'v2', unit: 'north' } as const
    const head = { ...exchange, kind: 'readFilter', receivedMs: 0 } as const
    const checks = [{ exchange: head, check: 'answers', times: 1 }] as const
    threads[0]?.note(endOf(1), { kind: 'kept', partner: 'acme', checks, isKept: true })
    threads[0]?.end()
    await clock.pass(10_000)
    comparison.offer(read())
    expect(threads[1]?.got.map(({ kind }) => kind)).toEqual(['offer'])
  })

  it('waits longer each time where threads end at once', async () => {
    const { comparison, clock, threads, read } = run()
    for (const waitMs of [10_000, 20_000, 40_000]) {
      comparison.offer(read())
      threads.at(-1)?.end(new RangeError('no module'))
      const before = threads.length
      await clock.pass(waitMs - 1)
      comparison.offer(read())
      expect(threads).toHaveLength(before)
      await clock.pass(1)
    }
  })

  it('posts what was missed before the end', async () => {
    const { comparison, threads, read } = run()
    for (let index = 0; index < 257; index += 1) comparison.offer(read())
    const closing = comparison.close()
    expect(threads[0]?.got.slice(-2).map(({ kind }) => kind)).toEqual(['missed', 'close'])
    threads[0]?.say({ kind: 'closed' })
    await closing
  })

  it('gives the settings of a reload to the thread', () => {
    const { comparison, threads, read, config } = run()
    comparison.offer(read())
    comparison.reload(config)
    expect(threads[0]?.got.at(-1)).toMatchObject({
      kind: 'settings',
      settings: { partners: [{ id: 'acme' }] },
    })
  })

  it('lets no error of an observer reach a client', () => {
    const { comparison, threads, errors, read, observe } = run()
    observe(() => {
      throw new TypeError('observer')
    })
    for (let index = 0; index < 257; index += 1) comparison.offer(read())
    threads[0]?.note(endOf(1), { kind: 'compared', exchange: comparedOf() }, { kind: 'begun', id: 2 })
    expect(errors).toEqual(['TypeError', 'TypeError'])
  })

  it('goes on without a thread where none can be started', async () => {
    const { comparison, errors, counts, read } = run(true)
    comparison.offer(read())
    comparison.wrote(partnerOf(read()), 'shadow', () => ['key'])
    expect(await counts()).toEqual({ 'offered answers': 1, 'dropped answers failed': 1 })
    expect(errors).toEqual(['RangeError'])
  })

  it('holds as many exchanges as there is room for until their comparison begins', async () => {
    const { comparison, threads, counts, read } = run()
    for (let index = 0; index < 300; index += 1) comparison.offer(read())
    expect(await counts()).toEqual({ 'offered answers': 300, 'dropped answers full': 44 })
    threads[0]?.note(...Array.from({ length: 10 }, (_, at): Note => ({ kind: 'begun', id: at + 1 })))
    for (let index = 0; index < 20; index += 1) comparison.offer(read())
    expect(await counts()).toMatchObject({ 'offered answers': 320, 'dropped answers full': 54 })
  })

  it('holds as many bytes as there is room for', async () => {
    const { comparison, counts, read } = run()
    const body = Buffer.alloc(1_000_000)
    for (let index = 0; index < 20; index += 1)
      comparison.offer(read({ reply: { status: 200, fields: [], body } }))
    expect(await counts()).toEqual({ 'offered answers': 20, 'dropped answers full': 4 })
  })

  it('leaves out writes that a thread without processor time cannot note', async () => {
    const { comparison, clock, threads, read } = run()
    const partner = partnerOf(read())
    const keys = Array.from({ length: 20_000 }, (_, index) => `key ${index}`)
    const posted = async (): Promise<number[]> => {
      await clock.pass(50)
      const got = threads[0]?.got ?? []
      return got.flatMap((message) => (message.kind === 'wrote' ? [message.writes.length] : []))
    }
    comparison.wrote(partner, 'shadow', () => keys)
    expect(threads).toHaveLength(0)
    comparison.offer(read())
    for (let index = 0; index < 5; index += 1) comparison.wrote(partner, 'shadow', () => keys)
    expect(await posted()).toEqual([2])
    threads[0]?.note({ kind: 'wrote', keys: 40_000 })
    comparison.wrote(partner, 'shadow', () => keys)
    comparison.wrote(partner, 'legacy', () => keys)
    expect(await posted()).toEqual([2, 1])
  })

  it('gets one 429 of a second, and the next thread knows for how long a side is left alone', async () => {
    const { comparison, clock, threads, read } = run()
    for (let index = 0; index < 5; index += 1) comparison.throttled(partnerOf(read()), 'shadow')
    await clock.pass(1_000)
    comparison.throttled(partnerOf(read()), 'shadow')
    expect(threads[0]?.got).toEqual(Array(2).fill({ kind: 'throttled', partner: 'acme' }))
    threads[0]?.note({ kind: 'silent', partner: 'acme', side: 'v3', forMs: 60_000 })
    threads[0]?.end()
    await clock.pass(10_000)
    comparison.offer(read())
    expect(threads[1]?.start.silent).toEqual([
      { partner: 'acme', side: 'v2', forMs: 290_000 },
      { partner: 'acme', side: 'v3', forMs: 50_000 },
    ])
  })

  it('waits at the end until the thread has kept what it knows, and no longer than ten seconds', async () => {
    const first = run()
    first.comparison.offer(first.read())
    const closing = first.comparison.close()
    expect(first.threads[0]?.got.at(-1)).toEqual({ kind: 'close' })
    first.threads[0]?.note(endOf(1))
    first.threads[0]?.say({ kind: 'closed' })
    await closing
    expect([first.threads[0]?.isTerminated, await first.counts()]).toEqual([
      true,
      { 'offered answers': 1, 'compared answers': 1 },
    ])

    const second = run()
    second.comparison.offer(second.read())
    const late = second.comparison.close()
    await second.clock.pass(10_000)
    await late
    expect([second.threads[0]?.isTerminated, second.errors]).toEqual([true, []])
    expect(await second.counts()).toEqual({ 'offered answers': 1, 'skipped answers stopped': 1 })
    second.comparison.offer(second.read())
    expect(await second.counts()).toMatchObject({ 'dropped answers closed': 1 })
  })
})

const endOf = (id: number): Note => ({
  kind: 'ended',
  id,
  check: 'answers',
  end: {
    kind: 'compared',
    seen: {
      partner: 'acme',
      check: 'answers',
      kind: 'readFilter',
      verdicts: new Map(),
      differences: new Map(),
      delaysMs: [],
    },
  },
})

const comparedOf = (): ComparedExchange => ({
  ...{ partner: 'acme', stage: 'shadow', revision: 1, served: 'v2', unit: 'north', kind: 'readFilter' },
  ...{ check: 'answers', receivedMs: 0, records: [], delaysMs: [] },
})

const partnerOf = (exchange: OfferedExchange) => exchange.client.partner
