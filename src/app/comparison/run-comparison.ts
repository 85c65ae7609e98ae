import { randomBytes } from 'node:crypto'

import { backgroundClock } from '../../clock.ts'
import type { ComparedExchange } from '../../compare/compared-exchange.ts'
import {
  checksOf,
  createAskSides,
  createChecks,
  createComparisonEngine,
  createPacedSides,
  createProcessorShare,
  type OfferedExchange,
} from '../../compare/live/index.ts'
import { AdapterError } from '../../errors.ts'
import { createSlicing } from '../../http/slices.ts'
import type { Partner } from '../../partners/partner.ts'
import { createUnmarkedCodes } from '../../reads/index.ts'
import {
  createReadPlanner,
  type ReadPlanner,
  toV3RegistrationPath,
  toV3RegistrationQuery,
} from '../../translate/index.ts'
import { createWholeReader } from '../../upstream/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import { createV3Reader } from '../../v3/index.ts'
import { createRemoteAuthorisation } from './remote-authorisation.ts'
import { createEvidence, toSeen } from './evidence.ts'
import { toInternalError } from './internal-error.ts'
import { createLearning, learnFrom } from './learning.ts'
import { createLiveOwnRules } from './own-rules.ts'
import type { CheckCount, Note, PostedWrite, ThreadSettings, ThreadStart, ToThread } from './messages.ts'
import { fromPostedExchange, fromPostedPartner, toPostedClient } from './posted-values.ts'
import type { Caller } from './thread-calls.ts'
import { createThreadStores } from './thread-stores.ts'
import { nowMicros } from './posted-values.ts'

/** The comparison as it runs in its thread. */
export interface RunningComparison {
  offer(message: Extract<ToThread, { readonly kind: 'offer' }>): void
  wrote(writes: readonly PostedWrite[]): void
  throttled(partner: string): void
  missed(missed: readonly CheckCount[]): void
  use(settings: ThreadSettings): void
  close(): Promise<void>
}

/** Connections to each side, besides those of clients. */
const CONNECTIONS = 4
const MAX_REPLY_BYTES = 4_194_304

/** Composes the comparison of live exchanges, with connections of its own to both sides. */
export function runComparison(
  start: ThreadStart,
  caller: Caller,
  note: (note: Note) => void,
): RunningComparison {
  const { timeouts, aheadMs, hasStore, isObserved } = start
  const baseUrl = new URL(start.baseUrl)
  const clock = backgroundClock
  const slicing = createSlicing()
  const nowMs = (): number => Date.now() + aheadMs
  const stop = new AbortController()
  let settings: ThreadSettings = start
  let partners = byId(settings)
  const rules = createLiveOwnRules(settings.partners, nowMs)
  const stores = createThreadStores(caller)
  const sides = createPacedSides(
    clock,
    stop.signal,
    hasStore ? stores.pace : undefined,
    (partner, side, forMs) => note({ kind: 'silent', partner, side, forMs }),
  )
  for (const { partner, side, forMs } of start.silent) {
    const own = partners.get(partner)
    if (own !== undefined) sides.of(own, side).silentFor(forMs)
  }
  const connected = { connections: CONNECTIONS, timeouts, clock }
  const reader = createV3Reader({
    ...connected,
    acquireMs: timeouts.acquireMs,
    baseUrl,
    nowMs,
    later: slicing.later,
  })
  const whole = createWholeReader({ ...connected, maxBytes: MAX_REPLY_BYTES })
  const planner = createReadPlanner(nowMs)
  const codes = createUnmarkedCodes(clock, {
    unmarkedCodesUnknown: (event) => note({ kind: 'unmarkedCodesUnknown', event }),
  })
  const ask = createAskSides({
    // Signs next links of answers that no client gets.
    reads: { planner, codes, reader, clock, linkSecret: randomBytes(32) },
    whole,
    authorise: createRemoteAuthorisation(caller, clock),
    sides,
    clock,
    stopped: stop.signal,
    toV3Registrations: (path, query) => toRegistrations(baseUrl, path, query),
    onCall: (partner, side, status) => note({ kind: 'called', partner, side, status }),
    // One that is not noted is noted with the next answer.
    onAccepted: (client) => void caller.call('accepted', toPostedClient(client)).catch(() => undefined),
  })
  const limits = (): BatchLimits => settings.limits
  const learning = createLearning(hasStore ? stores.learned : undefined, limits, note)
  const evidence = createEvidence(hasStore ? stores.evidence : undefined, note)
  const ids = new WeakMap<OfferedExchange, number>()
  const onCompared = (exchange: ComparedExchange): void => {
    evidence?.compared(exchange)
    if (isObserved) note({ kind: 'compared', exchange })
  }
  const openCheck = createChecks((exchange, check, end) => {
    const id = ids.get(exchange) ?? 0
    const shared = end.kind === 'compared' ? { kind: end.kind, seen: toSeen(end.exchange) } : end
    note({ kind: 'ended', id, check, end: shared })
  }, onCompared)
  const engine = createComparisonEngine({
    limits,
    slicing,
    share: createProcessorShare({ clock, usedMs, later: slicing.later, stopped: stop.signal }),
    clock,
    ask,
    sides,
    openCheck,
    rulesOf: ({ id }) => rules.of(id),
    isContinued: (query) => isContinued(planner, query),
    onExchange: (exchange) => {
      note({ kind: 'begun', id: ids.get(exchange) ?? 0 })
      learnFrom(learning, exchange)
    },
    hidden: learning.hidden,
    onFollowing: (batches) => note({ kind: 'following', batches }),
    onFailed: (cause) =>
      note({
        kind: 'internalError',
        event: toInternalError(cause),
      }),
    stop,
  })
  learning.start()
  evidence?.start()
  return {
    offer: ({ id, sinceMicros, exchange }) => {
      const partner = partners.get(exchange.client.partner)
      if (partner === undefined) {
        // Removed while no thread ran.
        for (const check of checksOf(exchange))
          note({ kind: 'ended', id, check, end: { kind: 'dropped', reason: 'closed' } })
        return
      }
      const offered = fromPostedExchange(exchange, partner)
      ids.set(offered, id)
      engine.offer(offered, clock.nowMs() - (nowMicros() - sinceMicros) / 1_000)
    },
    wrote: (writes) => {
      let count = 0
      for (const write of writes) {
        const partner = partners.get(write.partner)
        const keys = write.keys.split('\n').map((key) => (key === '' ? undefined : key))
        if (partner !== undefined) engine.wrote(partner, keys)
        count += keys.length
      }
      note({ kind: 'wrote', keys: count })
    },
    throttled: (id) => {
      const partner = partners.get(id)
      if (partner !== undefined) engine.throttled(partner)
    },
    missed: (missed) => {
      for (const { exchange, check, times } of missed)
        for (let time = 0; time < times; time += 1)
          evidence?.compared({ ...exchange, check, records: [], delaysMs: [] })
    },
    use: (next) => {
      settings = next
      // Exchanges of one that was removed are compared to their end.
      partners = new Map([...partners, ...byId(next)])
      rules.replace(next.partners)
    },
    close: async () => {
      const closed = engine.close()
      await whole.close()
      await closed
      await reader.close()
      await learning.stop()
      await evidence?.stop()
    },
  }
}

/** Processor time of this thread and of the others of the process, ms. */
function usedMs(): { readonly own: number; readonly others: number } {
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()].map(
    ({ user, system }) => (user + system) / 1_000,
  )
  return { own: own ?? 0, others: (all ?? 0) - (own ?? 0) }
}

const byId = ({ partners }: ThreadSettings): ReadonlyMap<string, Partner> =>
  new Map(partners.map((own) => [own.id, fromPostedPartner(own)]))

/** False also for a query that the adapter refuses, such as one with `$apply`: that V2 answers it is for the comparison to show. */
function isContinued(planner: Pick<ReadPlanner, 'tokenOf'>, query: string): boolean {
  try {
    return planner.tokenOf(query) !== undefined
  } catch (cause) {
    if (cause instanceof AdapterError) return false
    throw cause
  }
}

/** Undefined: V3 has no such address, or the query cannot be read. */
function toRegistrations(baseUrl: URL, path: string, query: string): URL | undefined {
  try {
    const resource = toV3RegistrationPath(decodeURIComponent(path))
    if (resource === undefined) return undefined
    const url = new URL(`${baseUrl.href.replace(/\/$/, '')}${resource}`)
    const own = toV3RegistrationQuery(query)
    if (own !== '') url.search = `?${own}`
    return url
  } catch {
    // Its client has the error of the side that served it.
    return undefined
  }
}
