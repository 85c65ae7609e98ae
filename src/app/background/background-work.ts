import { backgroundClock, type Clock } from '../../clock.ts'
import {
  type CheckKind,
  type ExchangeHead,
  headOf,
  type OfferedExchange,
  type OnCompared,
  sizeOf,
} from '../../compare/live/exchange.ts'
import {
  checkOf,
  comparedPercent,
  isCompared,
  keysOf,
  type LiveComparison,
} from '../../compare/live/live-comparison.ts'
import { createPace } from '../../compare/live/pace.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { Events } from '../../observability/events.ts'
import { statusClass } from '../../observability/instruments.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { Tracing } from '../../observability/tracing.ts'
import type { AcceptedCredentials } from '../../partners/credentials.ts'
import { type Authorisation, authoriseClient, type Partner } from '../../partners/partner.ts'
import type { PartnerRegistry } from '../../partners/registry.ts'
import { countName } from '../../rollout/evidence/count-name.ts'
import type { EvidenceKeeper } from '../../rollout/evidence/keep-evidence.ts'
import type { RateLimits, RateSlots } from '../../upstream/index.ts'
import { createBackgroundThread, startBackground } from './background-thread.ts'
import {
  type MainCalls,
  type Note,
  nowMicros,
  type PostedClient,
  type PostedEnd,
  type PostedResult,
  toInternalError,
  toPostedClient,
} from './calls.ts'

interface BackgroundParts {
  readonly config: Config
  readonly registry: Pick<PartnerRegistry, 'of'>
  readonly rateLimits: RateLimits
  readonly accepted: AcceptedCredentials
  /** The stores of the journal. Without a journal, each process limits only its own calls, and no evidence is stored. */
  readonly journal:
    { readonly slotsOf: (name: string) => RateSlots; readonly evidence: EvidenceKeeper } | undefined
  readonly metrics: Pick<Metrics, 'compare' | 'addGauge'>
  readonly events: Pick<Events, 'internalError' | 'unmarkedCodesUnknown'>
  readonly nowMs: () => number
  readonly onCompared: OnCompared | undefined
  readonly nice?: number | undefined
  readonly traceWork?: Tracing['work'] | undefined
  readonly clock?: Clock
  readonly startThread?: typeof startBackground
}

interface Background {
  readonly comparison: LiveComparison
  reload(config: Config): void
  /** Ends all comparisons within 10 s. Further calls return the same promise. */
  close(): Promise<void>
}

/**
 * The maximum number of record keys that wait for the thread. Further keys are dropped. The loss causes no false difference, because a
 * comparison looks for a newer mark on both sides before it reports a difference.
 */
const MAX_PENDING_KEYS = 50_000

/**
 * Creates the comparison of live exchanges. The main thread selects, limits and counts exchanges, and the background thread compares them.
 * If the background thread fails, only the comparisons in progress are lost. The number of offered exchanges is always the sum of the
 * compared, dropped and skipped exchanges.
 */
export function createBackgroundWork(parts: BackgroundParts): Background {
  const { metrics, events, journal, clock = backgroundClock } = parts
  const stop = new AbortController()
  const pace = createPace(clock, stop.signal, journal?.slotsOf)
  let comparing = 0
  let pendingKeys = 0

  const report = (cause: unknown): void => events.internalError(toInternalError(cause))
  /** Calls `act`, and reports an error in place of throwing it, because background work must not affect a client or end the process. */
  const safely = (act: () => void): void => {
    try {
      act()
    } catch (cause) {
      report(cause)
    }
  }
  const partnerOf = (id: string): Partner => {
    const partner = parts.registry.of(id)
    if (partner === undefined)
      throw new AdapterError('ADP_INTERNAL', 'A reload removed the partner. The comparison was not made.')
    return partner
  }
  const authorise = async ({ partner, ...client }: PostedClient): Promise<Authorisation> =>
    authoriseClient({ ...client, partner: partnerOf(partner) }, parts.rateLimits)
  const onNote = (note: Note): void => {
    switch (note.kind) {
      case 'begun':
        thread.begun(note.id)
        return
      case 'called': {
        const { client, side, status } = note
        const partner = parts.registry.of(client.partner)
        metrics.compare.called({ partner: client.partner, side, status: statusClass(status) })
        // Stops here if a reload has removed the partner since the call.
        if (partner === undefined) return
        if (side === 'v3' && status === 200) parts.accepted.accept({ ...client, partner })
        if (status === 429) pace.onThrottled(partner, side)
        return
      }
      case 'internalError':
        events.internalError(note.event)
        return
      case 'unmarkedCodesUnknown':
        events.unmarkedCodesUnknown(note.event)
    }
  }
  const calls: MainCalls = {
    authorise: async (client, refused) => {
      const { credentials, renew } = await authorise(client)
      const isRefused = credentials.authorization === refused
      return {
        credentials: isRefused && renew !== undefined ? await renew() : credentials,
        canRenew: renew !== undefined,
      }
    },
    acquire: async (client, side, timeMs) => {
      const { rateLimit } = side === 'v3' ? await authorise(client) : { rateLimit: undefined }
      return pace.acquire(partnerOf(client.partner), side, timeMs, rateLimit)
    },
    evidenceKey: async (scope) => {
      if (journal !== undefined) return journal.evidence.key(scope)
      throw new AdapterError(
        'ADP_JOURNAL_UNAVAILABLE',
        'No journal is configured. No evidence was stored. Set journal.url to store evidence.',
      )
    },
    note: (note) => safely(() => onNote(note)),
  }
  const thread = createBackgroundThread({
    ...{ config: parts.config, nice: parts.nice, nowMs: parts.nowMs, calls, clock, stop },
    start: { hasStore: journal !== undefined, isObserved: parts.onCompared !== undefined },
    onFailure: report,
    startThread: parts.startThread ?? startBackground,
  })

  const miss = (head: ExchangeHead, check: CheckKind): void => {
    journal?.evidence.miss(head, { kind: head.kind, check })
    safely(() => parts.onCompared?.({ ...head, check, records: [], delaysMs: [] }))
  }
  const end = (head: ExchangeHead, check: CheckKind, how: PostedEnd): void => {
    if (how.kind !== 'compared') {
      const { partner } = head
      if (how.kind === 'dropped') metrics.compare.dropped({ partner, check, reason: how.reason })
      else metrics.compare.skipped({ partner, check, reason: how.reason })
      miss(head, check)
      return
    }
    const { seen, evidence, exchange } = how
    metrics.compare.compared(seen)
    const checked = { kind: head.kind, check }
    if (exchange !== undefined) safely(() => parts.onCompared?.(exchange))
    if (evidence === undefined) journal?.evidence.miss(head, checked)
    else
      journal?.evidence.add(head, {
        size: Math.max(1, evidence.entry.pairs.length),
        check: checked,
        toEntry: ({ period }) => (period === evidence.period ? evidence.entry : undefined),
      })
  }
  const finish = (head: ExchangeHead, check: CheckKind, { end: how, learned }: PostedResult): void => {
    end(head, check, how)
    if (learned.length === 0) return
    const counts = new Map(learned.map((name) => [countName('learned', name), 1]))
    journal?.evidence.add(head, { size: 1, toEntry: () => ({ counts, pairs: [] }) })
  }
  /** Tells the thread about a write that is not compared, because the write may replace a mark that a comparison waits for. */
  const wrote = (partner: string, keys: readonly (string | undefined)[]): void => {
    const current = thread.current()
    if (current === undefined || keys.length === 0 || pendingKeys + keys.length > MAX_PENDING_KEYS) return
    pendingKeys += keys.length
    const noted = (): void => {
      pendingKeys -= keys.length
    }
    current.call('wrote', partner, keys).then(noted, noted)
  }
  // This function is a separate scope, because the code that waits for the result would otherwise keep the bytes of the exchange in memory.
  const handCompared = (exchange: OfferedExchange): ReturnType<typeof thread.hand<PostedResult>> => {
    const posted = { ...exchange, client: toPostedClient(exchange.client) }
    return thread.hand(sizeOf(exchange), async (call, id) => call('compare', id, nowMicros(), posted))
  }
  const offer = (exchange: OfferedExchange): void => {
    const head = headOf(exchange)
    const check = checkOf(exchange)
    metrics.compare.offered({ partner: head.partner, check })
    const compared = handCompared(exchange)
    if (typeof compared === 'string') {
      end(head, check, { kind: 'dropped', reason: compared })
      wrote(head.partner, keysOf(exchange))
      return
    }
    comparing += 1
    const ended = (result: PostedResult): void => {
      comparing -= 1
      safely(() => finish(head, check, result))
    }
    const { partner, stage, kind, served: side } = head
    const traced = parts.traceWork?.('comparison', { partner, stage, kind, side }, () => compared) ?? compared
    void traced.then(ended, () => {
      const reason = stop.signal.aborted ? 'stopped' : 'failed'
      ended({ end: { kind: 'skipped', reason }, learned: [] })
    })
  }
  metrics.addGauge(
    'compare_waiting',
    'Exchanges that wait for a comparison or are being compared.',
    () => comparing,
  )
  metrics.addGauge(
    'compare_silent',
    '1 for a side that comparisons do not call at the moment, because the side answered 429.',
    () => pace.silent().map(({ partner, side }) => ({ partner, side, value: 1 })),
    { labels: ['partner', 'side'] },
  )
  return {
    comparison: {
      isWanted: (entry, kind, partner) => {
        const percent = comparedPercent(entry, kind, partner)
        return percent > 0 && (percent >= 100 || Math.random() * 100 < percent)
      },
      offer: (exchange) => safely(() => offer(exchange)),
      onWrite: (partner, stage, keys) =>
        safely(() => {
          if (isCompared(partner, stage)) wrote(partner.id, keys())
        }),
      onThrottled: (partner, stage) =>
        safely(() => {
          if (isCompared(partner, stage)) pace.onThrottled(partner, 'v2')
        }),
    },
    reload: (next) => safely(() => thread.reload(next)),
    close: () => thread.close(),
  }
}
