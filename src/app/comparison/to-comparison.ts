import { constants } from 'node:os'
import { Worker } from 'node:worker_threads'

import { backgroundClock, type Clock, waitFor } from '../../clock.ts'
import type { CheckKind, ExchangeHead, OnCompared } from '../../compare/compared-exchange.ts'
import {
  checksOf,
  comparedPercent,
  createPace,
  headOf,
  isCompared,
  keysOf,
  type LiveComparison,
  type OfferedExchange,
  type PaceStore,
  sizeOf,
} from '../../compare/live/index.ts'
import { type Config, packConfig } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { Events } from '../../observability/events.ts'
import { statusClass } from '../../observability/instruments.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { type AcceptedCredentials, authoriseClient, type PartnerRegistry } from '../../partners/index.ts'
import type { Authorisation } from '../../partners/partner.ts'
import { countName, type EvidenceKeeper } from '../../rollout/index.ts'
import type { RateLimits } from '../../upstream/index.ts'
import { connect, type Remote } from '../remote-calls.ts'
import {
  type MainCalls,
  nowMicros,
  type PostedClient,
  type PostedEnd,
  type ThreadCalls,
  type ThreadStart,
  toInternalError,
  toPostedClient,
} from './calls.ts'

interface ComparisonParts {
  readonly config: Config
  readonly registry: Pick<PartnerRegistry, 'of'>
  readonly rateLimits: RateLimits
  readonly accepted: AcceptedCredentials
  /** Undefined: no journal is configured, so the pace is that of this process, and nothing is kept. */
  readonly journal: { readonly pace: PaceStore; readonly evidence: EvidenceKeeper } | undefined
  readonly metrics: Pick<Metrics, 'compare' | 'addGauge'>
  readonly events: Pick<Events, 'internalError' | 'unmarkedCodesUnknown'>
  readonly nowMs: () => number
  /** Called with what was compared. */
  readonly onCompared: OnCompared | undefined
  /** The nice value of the thread, on Linux. Default 19, the lowest priority. */
  readonly nice?: number | undefined
  /** Default: that of the process. */
  readonly clock?: Clock
  /** Default: a thread of this process. */
  readonly startThread?: typeof startComparisonThread
}

/** A comparison whose settings follow the configuration. */
interface ReloadableComparison extends LiveComparison {
  /** Another configuration is in use. */
  reload(config: Config): void
}

/** An exchange whose comparison is under way. */
interface OpenExchange {
  readonly head: ExchangeHead
  /** Those that have not ended. */
  readonly checks: Set<CheckKind>
  /** Bytes; 0 once its comparison has begun. */
  held: number
}

/** The most that waits for the thread. */
const MAX_WAITING = 256
const MAX_BYTES = 16_777_216
/** Keys of writes that the thread has not noted yet; more are left out, and both sides are asked for a newer mark before one counts as different. */
const MAX_PENDING_KEYS = 50_000
/** From the end of a thread that failed to the start of the next one; twice as long after each that did not note anything. */
const [RESTART_MS, MAX_RESTART_MS] = [10_000, 600_000]
const CLOSE_MS = 10_000

/**
 * The comparison of live exchanges: drawn, bounded and counted here, and compared in a thread of its own, which starts with the first one. One
 * that fails costs the checks that it had begun, and no client notices. offered = compared + dropped + skipped, whatever becomes of it.
 */
export function toComparison(parts: ComparisonParts): ReloadableComparison {
  const { metrics, events, journal, clock = backgroundClock, startThread = startComparisonThread } = parts
  const stop = new AbortController()
  const report = (cause: unknown): void => events.internalError(toInternalError(cause))
  /** Nothing of a comparison may reach the client whose exchange it is, or end the process. */
  const safely = (act: () => void): void => {
    try {
      act()
    } catch (cause) {
      report(cause)
    }
  }
  const safe =
    <Args extends readonly unknown[]>(act: (...args: Args) => void) =>
    (...args: Args): void =>
      safely(() => act(...args))
  const pace = createPace(clock, stop.signal, journal?.pace)
  const open = new Map<number, OpenExchange>()
  let { config } = parts
  let thread: ComparisonThread | undefined
  let restart = { atMs: -Infinity, afterMs: RESTART_MS }
  let [ids, waiting, held, pendingKeys] = [0, 0, 0, 0]

  const miss = (head: ExchangeHead, check: CheckKind): void => {
    journal?.evidence.miss(head, { kind: head.kind, check })
    safely(() => parts.onCompared?.({ ...head, check, records: [], delaysMs: [] }))
  }
  const begun = (own: OpenExchange): void => {
    if (own.held > 0) waiting -= 1
    held -= own.held
    own.held = 0
  }
  /** Counts and keeps the end of a check, once. */
  const end = (own: OpenExchange, check: CheckKind, how: PostedEnd): void => {
    if (!own.checks.delete(check)) return
    const { head } = own
    if (how.kind !== 'compared') {
      if (how.kind === 'dropped')
        metrics.compare.dropped({ partner: head.partner, check, reason: how.reason })
      else metrics.compare.skipped({ partner: head.partner, check, reason: how.reason })
      miss(head, check)
      return
    }
    metrics.compare.compared(how.seen)
    const checked = { kind: head.kind, check }
    const { evidence } = how
    if (evidence === undefined) journal?.evidence.miss(head, checked)
    else
      journal?.evidence.add(head, {
        size: Math.max(1, evidence.entry.pairs.length),
        check: checked,
        toEntry: ({ period }) => (period === evidence.period ? evidence.entry : undefined),
      })
  }
  /** Nothing of an exchange is under way any more. */
  const close = (id: number): void => {
    const own = open.get(id)
    if (own === undefined) return
    open.delete(id)
    begun(own)
    const reason = stop.signal.aborted ? 'stopped' : 'failed'
    for (const check of [...own.checks]) end(own, check, { kind: 'skipped', reason })
  }
  const partnerOf = (id: string) => {
    const partner = parts.registry.of(id)
    if (partner === undefined) throw new AdapterError('ADP_INTERNAL', 'The partner was removed.')
    return partner
  }
  const authorise = async ({ partner, ...client }: PostedClient): Promise<Authorisation> =>
    authoriseClient({ ...client, partner: partnerOf(partner) }, parts.rateLimits)
  const calls: MainCalls = {
    authorise: async (client) => {
      const { credentials, renew } = await authorise(client)
      return { credentials, canRenew: renew !== undefined }
    },
    renew: async (client, refused) => {
      const { partner, credentials } = await authorise(client)
      if (partner.tokens === undefined || credentials.authorization !== refused.authorization)
        return credentials
      const token = await partner.tokens.renew(refused.authorization.replace(/^Bearer /, ''))
      return { ...credentials, authorization: `Bearer ${token}` }
    },
    accepted: (client) => parts.accepted.accept({ ...client, partner: partnerOf(client.partner) }),
    acquire: async (client, side, timeMs) => {
      const { rateLimit } = side === 'v3' ? await authorise(client) : { rateLimit: undefined }
      return pace.acquire(partnerOf(client.partner), side, timeMs, rateLimit)
    },
    throttled: (partner, side) => pace.throttled(partnerOf(partner), side),
    evidenceKey: async (scope) => {
      if (journal !== undefined) return journal.evidence.key(scope)
      throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'No journal is configured: nothing is kept.')
    },
    begun: safe((id) => {
      restart.afterMs = RESTART_MS
      const own = open.get(id)
      if (own !== undefined) begun(own)
    }),
    ended: safe((id, check, how) => {
      const own = open.get(id)
      if (own !== undefined) end(own, check, how)
    }),
    learned: safe((scope, names) => {
      const counts = new Map(names.map((name) => [countName('learned', name), 1]))
      journal?.evidence.add(scope, { size: 1, toEntry: () => ({ counts, pairs: [] }) })
    }),
    called: safe((partner, side, status) =>
      metrics.compare.called({ partner, side, status: statusClass(status) }),
    ),
    compared: safe((exchange) => parts.onCompared?.(exchange)),
    internalError: (event) => events.internalError(event),
    unmarkedCodesUnknown: (event) => events.unmarkedCodesUnknown(event),
  }

  /** The thread that runs, or a new one. Undefined: one has failed just now, or the adapter stops. */
  const running = (): ComparisonThread | undefined => {
    if (thread !== undefined || stop.signal.aborted || clock.nowMs() < restart.atMs) return thread
    try {
      const start: ThreadStart = {
        config: packConfig(config),
        aheadMs: parts.nowMs() - Date.now(),
        hasStore: journal !== undefined,
        isObserved: parts.onCompared !== undefined,
        nice: parts.nice ?? constants.priority.PRIORITY_LOW,
      }
      thread = startThread(start, calls, onEnd)
    } catch (cause) {
      onEnd(cause)
    }
    return thread
  }
  const onEnd = (cause: unknown): void => {
    thread = undefined
    const { afterMs } = restart
    restart = { atMs: clock.nowMs() + afterMs, afterMs: Math.min(MAX_RESTART_MS, afterMs * 2) }
    if (!stop.signal.aborted) report(cause)
    for (const id of [...open.keys()]) close(id)
  }
  /** Without a thread no mark is followed that a newer one could replace. */
  const wrote = (partner: string, keys: readonly (string | undefined)[]): void => {
    if (thread === undefined || keys.length === 0 || pendingKeys + keys.length > MAX_PENDING_KEYS) return
    pendingKeys += keys.length
    const noted = (): void => {
      pendingKeys -= keys.length
    }
    thread.call('wrote', partner, keys).then(noted, noted)
  }
  const offer = (exchange: OfferedExchange): void => {
    const own = running()
    const head = headOf(exchange)
    const checks = checksOf(exchange)
    const bytes = Math.max(1, sizeOf(exchange))
    const isFull = waiting >= MAX_WAITING || held + bytes > MAX_BYTES
    for (const check of checks) metrics.compare.offered({ partner: head.partner, check })
    if (own === undefined || isFull) {
      const reason = own !== undefined ? 'full' : stop.signal.aborted ? 'closed' : 'failed'
      for (const check of checks) {
        metrics.compare.dropped({ partner: head.partner, check, reason })
        miss(head, check)
      }
      wrote(head.partner, keysOf(exchange))
      return
    }
    const id = ++ids
    open.set(id, { head, checks: new Set(checks), held: bytes })
    waiting += 1
    held += bytes
    const posted = { ...exchange, client: toPostedClient(exchange.client) }
    try {
      own.call('compare', id, nowMicros(), posted).then(
        () => close(id),
        () => close(id),
      )
    } catch (cause) {
      close(id)
      report(cause)
    }
  }
  metrics.addGauge(
    'compare_waiting',
    'Exchanges that wait to be compared, and those under way.',
    () => open.size,
  )
  metrics.addGauge(
    'compare_silent',
    '1 for a side that comparisons leave alone, since it has answered 429.',
    () => pace.silent().map(({ partner, side }) => ({ partner, side, value: 1 })),
    { labels: ['partner', 'side'] },
  )
  const closeThread = async (): Promise<void> => {
    stop.abort()
    if (thread === undefined) return
    const own = thread
    const waited = new AbortController()
    await Promise.race([own.close(), waitFor(CLOSE_MS, clock, waited.signal)])
    waited.abort()
    await own.terminate()
  }
  let closing: Promise<void> | undefined
  return {
    isWanted: (entry, kind, partner) => {
      const percent = comparedPercent(entry, kind, partner)
      return percent > 0 && (percent >= 100 || Math.random() * 100 < percent)
    },
    offer: (exchange) => safely(() => offer(exchange)),
    wrote: (partner, stage, keys) =>
      safely(() => {
        if (isCompared(partner, stage)) wrote(partner.id, keys())
      }),
    throttled: (partner, stage) =>
      safely(() => {
        if (isCompared(partner, stage)) pace.throttled(partner, 'v2')
      }),
    close: () => (closing ??= closeThread()),
    reload: (next) => {
      config = next
      safely(() => void thread?.call('use', packConfig(config)).catch(report))
    },
  }
}

/** The thread of comparisons, as the others see it. */
interface ComparisonThread extends Pick<Remote<ThreadCalls>, 'call'> {
  /** Resolves once it has ended what it has begun. From now on it keeps the process alive, until `terminate`. */
  close(): Promise<void>
  /** Ends it at once. */
  terminate(): Promise<unknown>
}

/** The file beside this one, as built or as source. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
/** More than all that is offered and asked for at the same time takes; beyond it the thread ends, and the adapter goes on. */
const HEAP_MIB = 384

/** Starts the thread; it does not keep the process alive. `onEnd` is called once, with the error that ended it where there was one. */
export function startComparisonThread(
  start: ThreadStart,
  calls: MainCalls,
  onEnd: (cause: unknown) => void,
): ComparisonThread {
  const worker = new Worker(THREAD, {
    workerData: start,
    execArgv: [],
    name: 'markbridge-compare',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  const { call, answer, end } = connect<ThreadCalls>(worker)
  answer({ ...calls })
  let failure: unknown
  worker.on('error', (cause) => {
    failure = cause
  })
  worker.on('exit', () => {
    onEnd(failure)
    end(new AdapterError('ADP_INTERNAL', 'The thread of comparisons has ended.'))
  })
  worker.unref()
  return {
    call,
    close: () => {
      worker.ref()
      return call('close')
    },
    terminate: () => worker.terminate(),
  }
}
