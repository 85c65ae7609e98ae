import { randomBytes } from 'node:crypto'

import { systemClock } from '../clock.ts'
import { createAdapterSide, createUpstreamSide, type OpenSession } from '../compare/run/sides.ts'
import type { Config, PartnerConfig } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { type Authorisation, authoriseWithout, type Partner } from '../partners/partner.ts'
import type { ReadSession } from '../reads/read-upstream.ts'
import { createUnmarkedCodes } from '../reads/unmarked-codes.ts'
import { createReadPlanner } from '../translate/index.ts'
import {
  createRateLimits,
  openCallBudget,
  type RateLimit,
  type RateLimits,
  soleQueue,
} from '../upstream/index.ts'
import { createV3Reader, type V3Credentials, type V3Reader } from '../v3/index.ts'
import { callsPerSecondOf, ownRateOf, toPartner, toTokenSource } from './partners.ts'
import { createRoutes } from './routes.ts'

/** The number of connections to V2 and to V3 each. Few are enough, because a comparison run reads one window at a time. */
const CONNECTIONS = 4
/** The time limit for one page including retries, in milliseconds. A run fails if the service is busy for longer. */
const PAGE_BUDGET_MS = 300_000
interface SidesOptions {
  readonly config: Config
  readonly partner: PartnerConfig
  readonly v2: URL
  readonly v2Credentials: V3Credentials
  /** The credentials for V3 if the partner has no key or tokens of its own. */
  readonly v3Credentials: V3Credentials
  /** Called if the attendance codes of V3 cannot be read. Letters in `reads.unmarkedCodes` then have no effect. */
  readonly onCodesUnknown: (status: number) => void
}

/** Opens V2 and V3 for a comparison run. The limits, connections and credentials are the same as in `createApp`. No call is made yet. */
export function openSides(options: SidesOptions) {
  const { config, v2, v2Credentials } = options
  const { upstreams } = config
  const routes = createRoutes(config)
  const rate = callsPerSecondOf(config)(options.partner)
  const own = toPartner(options.partner, rate, toTokenSource(options.partner, { route: routes.v3 }), config)
  // Turns the data envelope of pages off, because a comparison run compares rows.
  const partner: Partner = { ...own, dataEnvelope: false }
  const limits = createRateLimits(systemClock)
  const authorise = async (): Promise<Authorisation> =>
    expectAuthorised(await authoriseWithout(partner, limits, options.v3Credentials))
  const readers: V3Reader[] = []
  const v2Timeouts = { ...(upstreams.v2 ?? upstreams.v3).timeouts, bodyMs: upstreams.v3.timeouts.bodyMs }
  const open = (baseUrl: URL, below: string, side: 'v2' | 'v3', wholePages: boolean): V3Reader => {
    const timeouts = side === 'v2' ? v2Timeouts : upstreams.v3.timeouts
    const where = { baseUrl, below, timeouts, route: routes[side], wholePages }
    const reader = createV3Reader({
      ...where,
      connections: CONNECTIONS,
      nowMs: Date.now,
      clock: systemClock,
    })
    readers.push(reader)
    return reader
  }
  const v3Session =
    (reader: V3Reader): OpenSession =>
    async (signal) => {
      const { credentials, renew, rateLimit } = await authorise()
      return openSession(reader, credentials, rateLimit, signal, renew)
    }
  const v2Limit = v2LimitOf(options, rate, limits)
  const v2Session =
    (reader: V3Reader): OpenSession =>
    (signal) =>
      Promise.resolve(openSession(reader, v2Credentials, v2Limit, signal, undefined))
  const { baseUrl } = upstreams.v3
  const v3Reader = open(baseUrl, '/Attendance/V3/', 'v3', false)
  const v3Documents = v3Session(open(baseUrl, '/V3/', 'v3', true))
  const context = {
    planner: createReadPlanner(Date.now),
    codes: createUnmarkedCodes(systemClock, {
      unmarkedCodesUnknown: ({ status }) => options.onCodesUnknown(status),
    }),
    reader: v3Reader,
    clock: systemClock,
    linkSecret: randomBytes(32),
  }
  const registrations = createUpstreamSide(v3Documents, 'LearnerRegistrations')
  const adapter = createAdapterSide(context, authorise, v3Session(v3Reader), registrations)
  return {
    marks: {
      v2: createUpstreamSide(v2Session(open(v2, '/V2/Attendance/', 'v2', true)), 'AttendanceRecords'),
      v3: adapter.marks,
    },
    registrations: {
      v2: createUpstreamSide(v2Session(open(v2, '/V2/', 'v2', true)), 'LearnerRegistations'),
      v3: registrations,
    },
    adapter,
    close: async () => {
      await Promise.all(readers.map((reader) => reader.close()))
    },
  }
}

/**
 * Returns the rate limit for calls to V2, or `undefined` if there is no limit. If V2 and V3 have the same origin, one gateway counts the
 * calls to both, so both share a limit. The new gateway of the service has its own address and keys (service-facts 10).
 */
function v2LimitOf(
  { config, v2, v2Credentials, partner }: SidesOptions,
  v3Rate: number | undefined,
  v3Limits: RateLimits,
): RateLimit | undefined {
  const rate = ownRateOf(partner, v2)
  if (rate === undefined) return undefined
  const isShared = v2.origin === config.upstreams.v3.baseUrl.origin && v3Rate !== undefined
  const limits = isShared ? v3Limits : createRateLimits(systemClock)
  return limits.of(v2Credentials.subscriptionKey, rate)
}

function openSession(
  reader: V3Reader,
  credentials: V3Credentials,
  rateLimit: RateLimit | undefined,
  signal: AbortSignal,
  renew: ReadSession['renew'],
): ReadSession {
  const budget = openCallBudget({
    rateLimit,
    queueKey: soleQueue,
    priority: 'comparison',
    budgetMs: PAGE_BUDGET_MS,
    clock: systemClock,
    signal: () => signal,
  })
  return { reader, queueKey: soleQueue, credentials, renew, budget, signal, pages: 0 }
}

function expectAuthorised<Known>(known: Known | 'credentials'): Known {
  if (known !== 'credentials') return known
  throw new AdapterError(
    'ADP_USAGE',
    'The partner has no credentials of its own for V3. Nothing was read. Give the credentials for V3 in MARKBRIDGE_V3_SUBSCRIPTION_KEY and MARKBRIDGE_V3_TOKEN.',
  )
}
