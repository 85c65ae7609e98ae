import { randomBytes } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'

import { backgroundClock } from '../../clock.ts'
import type { CheckKind, ComparedExchange, ComparedRecord } from '../../compare/compared-exchange.ts'
import { createOwnRules, type OwnRules } from '../../compare/diff/index.ts'
import { toEntry } from '../../compare/evidence/index.ts'
import { createLearning, type LearnedExchange } from '../../compare/learn/index.ts'
import {
  type CheckEnd,
  checksOf,
  createAskSides,
  createComparisonEngine,
  fingerprintOf,
  headOf,
  type OfferedExchange,
} from '../../compare/live/index.ts'
import { createProcessorShare, threadEarnings } from '../../compare/processor-share.ts'
import { fieldOf } from '../../compare/wire-exchange.ts'
import { type Config, unpackConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { ComparedSeen } from '../../observability/metrics.ts'
import type { Authorisation, Client, Partner } from '../../partners/partner.ts'
import { createUnmarkedCodes } from '../../reads/index.ts'
import { toEvidenceKey } from '../../rollout/index.ts'
import {
  createReadPlanner,
  type ReadPlanner,
  toV3RegistrationPath,
  toV3RegistrationQuery,
} from '../../translate/index.ts'
import { createWholeReader } from '../../upstream/index.ts'
import { createV3Reader } from '../../v3/index.ts'
import { batchLimitsOf, toPartners } from '../partners.ts'
import { connect, type Remote } from '../remote-calls.ts'
import {
  fromPostedExchange,
  type MainCalls,
  nowMicros,
  type PostedEnd,
  type ThreadCalls,
  type ThreadStart,
  toInternalError,
  toPostedClient,
} from './calls.ts'

// The thread of comparisons: a loop and a heap of its own, so that neither its work nor its collections of garbage hold up a client.

/** Connections to each side, besides those of clients. */
const CONNECTIONS = 4
const MAX_REPLY_BYTES = 4_194_304

/** Composes the comparison of live exchanges, with connections of its own to both sides. */
function runComparison(
  { config: packed, aheadMs, hasStore, isObserved }: ThreadStart,
  main: Remote<MainCalls>,
): ThreadCalls {
  const clock = backgroundClock
  const nowMs = (): number => Date.now() + aheadMs
  const stop = new AbortController()
  /** The main thread reports its own failures. */
  const tell = (called: Promise<void>): void => void called.catch(() => undefined)
  let config = unpackConfig(packed)
  let limits = batchLimitsOf(config)
  let partners = partnersById(config)
  let [rules, rulesDay] = [new Map<string, OwnRules>(), '']
  const { baseUrl, timeouts } = config.upstreams.v3
  const connected = { connections: CONNECTIONS, timeouts, clock }
  const reader = createV3Reader({ ...connected, acquireMs: config.tuning.acquireMs, baseUrl, nowMs })
  const whole = createWholeReader(CONNECTIONS, timeouts, MAX_REPLY_BYTES)
  const planner = createReadPlanner(nowMs)
  const codes = createUnmarkedCodes(clock, {
    unmarkedCodesUnknown: (event) => tell(main.call('unmarkedCodesUnknown', event)),
  })
  const ask = createAskSides({
    // Signs next links of answers that no client gets.
    reads: { planner, codes, reader, clock, linkSecret: randomBytes(32) },
    whole,
    authorise: (client) => authorise(client, main),
    acquire: (client, side, timeMs) => main.call('acquire', toPostedClient(client), side, timeMs),
    onThrottled: (partner, side) => tell(main.call('throttled', partner, side)),
    clock,
    stopped: stop.signal,
    toV3Registrations: (path, query) => toRegistrations(baseUrl, path, query),
    onCall: (partner, side, status) => tell(main.call('called', partner, side, status)),
    onAccepted: (client) => tell(main.call('accepted', toPostedClient(client))),
  })
  const engine = createComparisonEngine({
    limits: () => limits,
    share: createProcessorShare({
      clock,
      earnMs: threadEarnings(usedMs),
      later: setImmediate,
      stopped: stop.signal,
    }),
    clock,
    ask,
    // Dated once a day, since one may expire while the adapter runs.
    rulesOf: (partner) => {
      const today = new Date(nowMs()).toISOString().slice(0, 10)
      if (today !== rulesDay) {
        const own = config.partners.filter(({ compare }) => compare.rules.length > 0)
        rules = new Map(own.map(({ id, compare }) => [id, createOwnRules(compare.rules, today)]))
        rulesDay = today
      }
      return rules.get(partner)
    },
    isContinued: (query) => isContinued(planner, query),
    stopped: stop.signal,
  })
  const learning = createLearning(() => limits)
  const learn = (exchange: OfferedExchange, names: readonly string[]): void => {
    const { partner, stage, revision } = headOf(exchange)
    if (names.length > 0) tell(main.call('learned', { partner, stage, revision }, names))
  }
  const toPostedEnd = async (
    exchange: OfferedExchange,
    check: CheckKind,
    result: CheckEnd,
  ): Promise<PostedEnd> => {
    if (result.kind !== 'compared') return result
    const compared: ComparedExchange = {
      ...headOf(exchange),
      check,
      ...{ fingerprint: fingerprintOf(exchange), records: result.records, delaysMs: result.delaysMs ?? [] },
    }
    if (isObserved) tell(main.call('compared', compared))
    const seen = toSeen(compared)
    if (!hasStore || compared.records.length === 0) return { kind: 'compared', seen, evidence: undefined }
    const { partner, stage, revision } = compared
    // The journal reports its own failure.
    const key = await main.call('evidenceKey', { partner, stage, revision }).catch(() => undefined)
    const evidence = key && { period: key.period, entry: toEntry(compared, toEvidenceKey(key)) }
    return { kind: 'compared', seen, evidence }
  }
  const compare: ThreadCalls['compare'] = async (id, sinceMicros, posted) => {
    const partner = partners.get(posted.client.partner)
    if (partner === undefined) {
      // Removed while no thread ran.
      for (const check of checksOf(posted))
        tell(main.call('ended', id, check, { kind: 'dropped', reason: 'closed' }))
      return
    }
    const exchange = fromPostedExchange(posted, partner)
    const ending: Promise<void>[] = []
    const report = (cause: unknown): void => {
      if (!stop.signal.aborted) tell(main.call('internalError', toInternalError(cause)))
    }
    const post = async (check: CheckKind, end: CheckEnd): Promise<void> =>
      tell(main.call('ended', id, check, await toPostedEnd(exchange, check, end)))
    try {
      await engine.compare(exchange, clock.nowMs() - (nowMicros() - sinceMicros) / 1_000, {
        onBegun: () => {
          tell(main.call('begun', id))
          const learned = hasStore ? toLearned(exchange) : undefined
          if (learned !== undefined) learn(exchange, learning.observe(partner.id, learned))
        },
        onEnd: (check, end) => ending.push(post(check, end).catch(report)),
        isHiddenWanted: () => hasStore && learning.isHiddenWanted(partner.id),
        onHidden: (outcome) => learn(exchange, [`mismatch/${outcome}`]),
      })
    } catch (cause) {
      report(cause)
    }
    await Promise.all(ending)
  }
  const running = new Set<Promise<void>>()
  return {
    compare: async (...exchange) => {
      const comparing = compare(...exchange)
      running.add(comparing)
      await comparing
      running.delete(comparing)
    },
    wrote: (partner, keys) => engine.wrote(partner, keys),
    use: (next) => {
      config = unpackConfig(next)
      limits = batchLimitsOf(config)
      // Exchanges of one that was removed are compared to their end.
      partners = new Map([...partners, ...partnersById(config)])
      rulesDay = ''
    },
    close: async () => {
      stop.abort()
      await whole.close()
      await Promise.all(running)
      await reader.close()
    },
  }
}

const partnersById = (config: Config): ReadonlyMap<string, Partner> =>
  new Map(toPartners(config).map((partner) => [partner.id, partner]))

/** Keys, tokens and the rate of calls stay with the thread that serves clients. */
async function authorise(client: Client, main: Remote<MainCalls>): Promise<Authorisation> {
  const own = toPostedClient(client)
  const { credentials, canRenew } = await main.call('authorise', own)
  const renew = canRenew ? () => main.call('renew', own, credentials) : undefined
  return { ...client, credentials, rateLimit: undefined, renew }
}

/** What V2's reply shows of the partner's interface; undefined: V2 has not served it. */
function toLearned(exchange: OfferedExchange): LearnedExchange | undefined {
  if (exchange.served !== 'v2' || exchange.reply === undefined) return undefined
  const { reply } = exchange
  const isWrite = 'request' in exchange
  return {
    kind: isWrite ? exchange.kind : 'read',
    request: {
      contentType: isWrite ? exchange.request.contentType : undefined,
      isGeneric: isWrite && exchange.isGeneric,
      body: isWrite ? exchange.body : undefined,
    },
    reply: {
      status: reply.status,
      contentType: fieldOf(reply, 'content-type'),
      body: fieldOf(reply, 'content-encoding') === undefined ? reply.body : undefined,
    },
  }
}

/** What the metrics count of an exchange. */
function toSeen({ partner, check, kind, records, delaysMs }: ComparedExchange): ComparedSeen {
  const countBy = <Item>(
    items: readonly Item[],
    nameOf: (item: Item) => string,
  ): ReadonlyMap<string, number> =>
    new Map([...Map.groupBy(items, nameOf)].map(([name, own]) => [name, own.length]))
  const differences = records.flatMap((record) => record.differences)
  return {
    ...{ partner, check, kind, delaysMs },
    verdicts: countBy(records, ({ verdict }: ComparedRecord) => verdict),
    differences: countBy(differences, (found) => `${found.kind} ${found.path}`),
  }
}

/** Undefined: V3 has no such address, or the query cannot be read: its client has the error of the side that served it. */
function toRegistrations(baseUrl: URL, path: string, query: string): URL | undefined {
  try {
    const resource = toV3RegistrationPath(decodeURIComponent(path))
    if (resource === undefined) return undefined
    const url = new URL(`${baseUrl.href.replace(/\/$/, '')}${resource}`)
    const own = toV3RegistrationQuery(query)
    if (own !== '') url.search = `?${own}`
    return url
  } catch {
    return undefined
  }
}

/** False also for a query that the adapter refuses, such as one with `$apply`: that V2 answers it is for the comparison to show. */
function isContinued(planner: Pick<ReadPlanner, 'tokenOf'>, query: string): boolean {
  try {
    return planner.tokenOf(query) !== undefined
  } catch (cause) {
    if (cause instanceof AdapterError) return false
    throw cause
  }
}

/** Processor time of this thread and of the others of the process, ms. */
function usedMs(): { readonly own: number; readonly others: number } {
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()].map(
    ({ user, system }) => (user + system) / 1_000,
  )
  return { own: own ?? 0, others: (all ?? 0) - (own ?? 0) }
}

/** Where another thread wants the same processor, that one has it. Linux counts threads as processes; elsewhere nothing changes. */
function takePriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, nice)
  } catch {
    // A container without /proc, or a profile that forbids it: the threads share the processor evenly.
  }
}

if (parentPort === null) throw new AdapterError('ADP_INTERNAL', 'This file is the thread of comparisons.')
const start = workerData as ThreadStart
takePriority(start.nice)
const main = connect<MainCalls>(parentPort)
main.answer({ ...runComparison(start, main) })
