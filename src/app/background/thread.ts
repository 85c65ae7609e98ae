import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'

import { backgroundClock } from '../../clock.ts'
import { createOwnRules, type OwnRules } from '../../compare/diff/findings.ts'
import { toEntry } from '../../compare/evidence/to-entry.ts'
import { createLearning } from '../../compare/learn/learned.ts'
import { createAskSides } from '../../compare/live/ask-sides.ts'
import {
  type ComparedExchange,
  type ComparedRecord,
  fingerprintOf,
  headOf,
  type OfferedExchange,
} from '../../compare/live/exchange.ts'
import { type CheckEnd, checkOf, createComparisonEngine } from '../../compare/live/live-comparison.ts'
import { createProcessorShare, takePriority, usedMs } from '../../compare/processor-share.ts'
import type { WireMessage } from '../../compare/wire-exchange.ts'
import { type Config, unpackConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { ComparedSeen } from '../../observability/metrics.ts'
import type { Authorisation, Client, Partner } from '../../partners/partner.ts'
import { createUnmarkedCodes } from '../../reads/unmarked-codes.ts'
import { toEvidenceKey } from '../../rollout/evidence/evidence-key.ts'
import {
  createReadPlanner,
  type ReadPlanner,
  toV3RegistrationPath,
  toV3RegistrationQuery,
} from '../../translate/index.ts'
import { createReaderConnections, createWholeReader } from '../../upstream/index.ts'
import { createV3Reader } from '../../v3/index.ts'
import { createRoutes } from '../routes.ts'
import { batchLimitsOf, toPartners } from '../partners.ts'
import { connect, type Remote } from '../remote-calls.ts'
import {
  type MainCalls,
  type Note,
  nowMicros,
  type PostedEnd,
  type PostedExchange,
  type PostedResult,
  type ThreadCalls,
  type ThreadStart,
  toInternalError,
  toPostedClient,
} from './calls.ts'

// Comparisons run in their own thread, so that their work and their garbage collection do not delay clients.

/** The number of connections to each side, in addition to the connections for clients. */
const CONNECTIONS = 4
const MAX_REPLY_BYTES = 4_194_304

function runBackground(
  { config: packed, aheadMs, hasStore, isObserved }: ThreadStart,
  main: Remote<MainCalls>,
): ThreadCalls {
  const clock = backgroundClock
  const nowMs = (): number => Date.now() + aheadMs
  const stop = new AbortController()
  // Ignores a failed note, because the main thread reports its own failures.
  const note = (what: Note): void => void main.call('note', what).catch(() => undefined)
  const onFailure = (cause: unknown): void => {
    if (!stop.signal.aborted) note({ kind: 'internalError', event: toInternalError(cause) })
  }
  let config = unpackConfig(packed)
  let limits = batchLimitsOf(config)
  let partners = partnersById(config)
  let [rules, rulesDay] = [new Map<string, OwnRules>(), '']
  const { baseUrl, timeouts } = config.upstreams.v3
  const routes = createRoutes(config)
  const connected = { connections: CONNECTIONS, timeouts, route: routes.v3, clock }
  const reader = createV3Reader({ ...connected, baseUrl, nowMs })
  const whole = createWholeReader(createReaderConnections(CONNECTIONS, timeouts, routes.v2), MAX_REPLY_BYTES)
  const planner = createReadPlanner(nowMs)
  const codes = createUnmarkedCodes(clock, {
    unmarkedCodesUnknown: (event) => note({ kind: 'unmarkedCodesUnknown', event }),
  })
  const ask = createAskSides({
    // A random secret is enough, because no client receives the next links that the secret signs.
    reads: { planner, codes, reader, clock, linkSecret: randomBytes(32) },
    whole,
    authorise: (client) => authorise(client, main),
    acquire: (client, side, timeMs) => main.call('acquire', toPostedClient(client), side, timeMs),
    clock,
    stopped: stop.signal,
    toV3Registrations: (path, query) => toRegistrations(baseUrl, path, query),
    onCall: (client, side, status) => note({ kind: 'called', client: toPostedClient(client), side, status }),
  })
  const share = createProcessorShare(clock, usedMs, stop.signal)
  const engine = createComparisonEngine({
    limits: () => limits,
    share,
    clock,
    ask,
    // Creates the rules again each day, because a rule may expire while the adapter runs.
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
  const observe = createLearning(() => limits)
  const toPostedEnd = async (exchange: OfferedExchange, end: CheckEnd): Promise<PostedEnd> => {
    if (end.kind !== 'compared') return end
    const { records, delaysMs = [] } = end
    const [head, check] = [headOf(exchange), checkOf(exchange)]
    const fingerprint = fingerprintOf(exchange)
    const compared: ComparedExchange = { ...head, check, fingerprint, records, delaysMs }
    const posted = { seen: toSeen(compared), exchange: isObserved ? compared : undefined }
    // Ignores a failure to get the key, because the journal reports its own failures.
    const isKept = hasStore && records.length > 0
    const key = isKept ? await main.call('evidenceKey', head).catch(() => undefined) : undefined
    const evidence = key && { period: key.period, entry: toEntry(compared, toEvidenceKey(key)) }
    return { kind: 'compared', ...posted, evidence }
  }
  const compare = async (id: number, sinceMicros: number, posted: PostedExchange): Promise<PostedResult> => {
    const partner = partners.get(posted.client.partner)
    // Skips the exchange if a reload removed its partner before this thread started.
    if (partner === undefined) return { end: { kind: 'skipped', reason: 'failed' }, learned: [] }
    const exchange = toOffered(posted, partner)
    const learned: string[] = []
    const sinceMs = clock.nowMs() - (nowMicros() - sinceMicros) / 1_000
    const end = await engine.compare(exchange, sinceMs, () => {
      note({ kind: 'begun', id })
      if (!hasStore || exchange.served !== 'v2' || exchange.reply === undefined) return
      learned.push(...observe(partner.id, { ...exchange, reply: exchange.reply }))
    })
    return { end: await toPostedEnd(exchange, end), learned }
  }
  const running = new Set<Promise<unknown>>()
  const run = async <Result>(work: Promise<Result>): Promise<Result> => {
    running.add(work)
    try {
      return await work
    } catch (cause) {
      onFailure(cause)
      throw cause
    } finally {
      running.delete(work)
    }
  }
  return {
    compare: (...exchange) => run(compare(...exchange)),
    wrote: (partner, keys) => engine.wrote(partner, keys),
    use: (next) => {
      config = unpackConfig(next)
      limits = batchLimitsOf(config)
      // Keeps removed partners in the map, so that their waiting exchanges can still be compared.
      partners = new Map([...partners, ...partnersById(config)])
      rulesDay = ''
    },
    close: async () => {
      stop.abort()
      await whole.close()
      await Promise.allSettled(running)
      await reader.close()
    },
  }
}

const partnersById = (config: Config): ReadonlyMap<string, Partner> =>
  new Map(toPartners(config).map((partner) => [partner.id, partner]))

function toOffered(posted: PostedExchange, partner: Partner): OfferedExchange {
  const client: Client = { ...posted.client, partner }
  if ('records' in posted) return { ...posted, client }
  const request = toMessage(posted.request)
  if ('keys' in posted) return { ...posted, client, request, reply: toMessage(posted.reply) }
  return { ...posted, client, request, reply: posted.reply && toMessage(posted.reply) }
}

const toMessage = <Message extends WireMessage>(message: Message): Message => ({
  ...message,
  body: toBuffer(message.body),
})

const toBuffer = (bytes: Uint8Array | undefined): Buffer | undefined =>
  bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Asks the main thread for credentials, because only the main thread has keys, tokens and rate limits. */
async function authorise(client: Client, main: Remote<MainCalls>): Promise<Authorisation> {
  const own = toPostedClient(client)
  const { credentials, canRenew } = await main.call('authorise', own)
  const renew = async (): Promise<Authorisation['credentials']> =>
    (await main.call('authorise', own, credentials.authorization)).credentials
  return { ...client, credentials, rateLimit: undefined, renew: canRenew ? renew : undefined }
}

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

/** Returns the V3 address for a V2 read of registrations, or `undefined` if V3 has no such address or the query cannot be parsed. */
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

/** Returns true if a query continues an earlier page. Returns false for a query that the adapter refuses. */
function isContinued(planner: Pick<ReadPlanner, 'tokenOf'>, query: string): boolean {
  try {
    return planner.tokenOf(query) !== undefined
  } catch (cause) {
    if (cause instanceof AdapterError) return false
    throw cause
  }
}

if (parentPort === null)
  throw new AdapterError('ADP_INTERNAL', 'This file runs only as the background thread of the adapter.')
const start = workerData as ThreadStart
takePriority(start.nice)
const main = connect<MainCalls>(parentPort)
main.answer({ ...runBackground(start, main) })
