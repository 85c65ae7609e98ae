import { constants } from 'node:os'

import { backgroundClock, type Clock } from '../../clock.ts'
import { waitFor } from '../../clock/wait-for.ts'
import type { OnCompared } from '../../compare/compared-exchange.ts'
import { isCompared, isDrawn, keysOf, type LiveComparison, SILENCE_MS } from '../../compare/live/index.ts'
import type { Config } from '../../config/index.ts'
import type { Events } from '../../observability/events.ts'
import { statusClass } from '../../observability/instruments.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { BatchLimits } from '../../v2/index.ts'
import { type CallAnswers, type CallParts, createCallAnswers } from './answer-calls.ts'
import { toInternalError } from './internal-error.ts'
import type { FromThread, Note, PostedWrite, ThreadSettings } from './messages.ts'
import { createOpenExchanges } from './open-exchanges.ts'
import { nowMicros, toPostedExchange, toPostedPartners } from './posted-values.ts'
import { createSilences } from './silences.ts'
import { type ComparisonThread, startComparisonThread } from './start-thread.ts'
import { toFailure } from './thread-calls.ts'

export interface ComparisonParts extends Omit<CallParts, 'stopped'> {
  readonly config: Config
  readonly limits: () => BatchLimits
  readonly metrics: Pick<Metrics, 'compare' | 'evidenceKept' | 'addGauge'>
  readonly events: Pick<
    Events,
    'internalError' | 'unmarkedCodesUnknown' | 'learnedNotKept' | 'evidenceNotKept'
  >
  readonly nowMs: () => number
  /** Undefined until the adapter has started. */
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
export interface ReloadableComparison extends LiveComparison {
  /** Another configuration is in use. */
  reload(config: Config): void
}

/** Keys of writes that the thread has not noted yet; more are left out, and both sides are asked for a newer mark before one counts as different. */
const MAX_PENDING_KEYS = 50_000
/** From the end of a thread that failed to the start of the next one; twice as long after each that did not note anything. */
const [RESTART_MS, MAX_RESTART_MS] = [10_000, 600_000]
const CLOSE_MS = 10_000
/** Writes of this time wake the thread once. */
const WRITES_MS = 50
/** Of the 429s of one partner in this time one is enough. */
const THROTTLED_MS = 1_000

/**
 * The comparison of live exchanges: drawn, bounded and counted here, and compared in a thread of its own, which starts with the first one. One
 * that fails costs the checks that it had begun, and no client notices.
 */
export function toComparison(parts: ComparisonParts): ReloadableComparison {
  const { metrics, events, clock = backgroundClock, startThread = startComparisonThread } = parts
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
  const exchanges = createOpenExchanges(metrics.compare, (head, check) =>
    safely(() => parts.onCompared?.({ ...head, check, records: [], delaysMs: [] })),
  )
  const silences = createSilences(clock)
  let { config } = parts
  let thread: ComparisonThread | undefined
  let restart = { atMs: -Infinity, afterMs: RESTART_MS }
  let [pendingKeys, following] = [0, 0]
  let writes: PostedWrite[] = []
  let cancelWrites: (() => void) | undefined
  let onClosed = (): void => undefined

  const settings = (): ThreadSettings => ({
    limits: parts.limits(),
    partners: toPostedPartners(parts.registry.partners(), config),
  })
  /** The thread that runs, or a new one. Undefined: one has failed just now, or the adapter stops. */
  const running = (): ComparisonThread | undefined => {
    if (thread !== undefined || stop.signal.aborted || clock.nowMs() < restart.atMs) return thread
    try {
      const { baseUrl, timeouts } = config.upstreams.v3
      const start = {
        ...settings(),
        baseUrl: baseUrl.href,
        timeouts: { ...timeouts, acquireMs: config.tuning.acquireMs },
        aheadMs: parts.nowMs() - Date.now(),
        hasStore: parts.journal !== undefined,
        isObserved: parts.onCompared !== undefined,
        nice: parts.nice ?? constants.priority.PRIORITY_LOW,
        silent: silences.list(),
      }
      const ended = new AbortController()
      const answer = createCallAnswers({ ...parts, stopped: AbortSignal.any([stop.signal, ended.signal]) })
      const own = startThread(
        start,
        (message) => receive(own, answer, message),
        (cause) => {
          ended.abort()
          onEnd(cause)
        },
      )
      thread = own
    } catch (cause) {
      onEnd(cause)
    }
    return thread
  }
  const onEnd = (cause: unknown): void => {
    thread = undefined
    restart = {
      atMs: clock.nowMs() + restart.afterMs,
      afterMs: Math.min(MAX_RESTART_MS, restart.afterMs * 2),
    }
    ;[pendingKeys, following] = [0, 0]
    writes = []
    cancelWrites?.()
    cancelWrites = undefined
    if (!stop.signal.aborted) report(cause)
    exchanges.endAll(stop.signal.aborted ? 'stopped' : 'failed')
    onClosed()
  }
  const receive = (own: ComparisonThread, answer: CallAnswers, message: FromThread): void => {
    switch (message.kind) {
      case 'notes':
        restart.afterMs = RESTART_MS
        for (const note of message.notes) safely(() => applyNote(note))
        postMissed(own)
        break
      case 'call':
        void answer(message)
          .then(
            (value) => own.post({ kind: 'result', id: message.id, value }),
            (cause: unknown) => own.post({ kind: 'failure', id: message.id, failure: toFailure(cause) }),
          )
          .catch(report)
        break
      case 'closed':
        onClosed()
    }
  }
  const applyNote = (note: Note): void => {
    switch (note.kind) {
      case 'begun':
        exchanges.begun(note.id)
        break
      case 'wrote':
        pendingKeys -= note.keys
        break
      case 'silent':
        silences.note(note.partner, note.side, note.forMs)
        break
      case 'ended':
        exchanges.ended(note.id, note.check, note.end)
        break
      case 'following':
        following = note.batches
        break
      case 'called': {
        const status = note.status === undefined ? 'none' : statusClass(note.status)
        metrics.compare.called(note.partner, note.side, status)
        break
      }
      case 'kept': {
        const requests = note.checks.reduce((sum, { times }) => sum + times, 0)
        exchanges.kept(note.checks)
        metrics.evidenceKept(note.partner, requests, note.isKept)
        break
      }
      case 'compared':
        parts.onCompared?.(note.exchange)
        break
      case 'internalError':
        events.internalError(note.event)
        break
      case 'unmarkedCodesUnknown':
        events.unmarkedCodesUnknown(note.event)
        break
      case 'learnedNotKept':
        events.learnedNotKept(note.event)
        break
      case 'evidenceNotKept':
        events.evidenceNotKept(note.event)
    }
  }
  const postMissed = (own: ComparisonThread): void => {
    const missed = exchanges.takeMissed()
    if (missed.length > 0) own.post({ kind: 'missed', missed })
  }
  const postWrites = (own: ComparisonThread): void => {
    cancelWrites?.()
    cancelWrites = undefined
    if (writes.length > 0) own.post({ kind: 'wrote', writes })
    writes = []
  }
  /** Without a thread no mark is followed that a newer one could replace. */
  const wrote = (partner: string, keys: readonly (string | undefined)[]): void => {
    const own = thread
    if (own === undefined || keys.length === 0) return
    if (pendingKeys + keys.length > MAX_PENDING_KEYS) return
    pendingKeys += keys.length
    writes.push({ partner, keys: keys.map((key) => key ?? '').join('\n') })
    cancelWrites ??= clock.after(WRITES_MS, () => postWrites(own))
  }
  metrics.addGauge(
    { name: 'compare_waiting', help: 'Exchanges that wait to be compared, and checks under way.' },
    () => exchanges.count() + following,
  )
  metrics.addGauge(
    {
      name: 'compare_silent',
      help: '1 for a side that comparisons leave alone, since it has answered 429.',
      labels: ['partner', 'side'],
    },
    () => silences.list().map(({ partner, side }) => ({ labels: { partner, side }, value: 1 })),
  )
  const close = async (): Promise<void> => {
    stop.abort()
    const own = thread
    if (own === undefined) return
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve
    })
    postMissed(own)
    own.close()
    const waited = new AbortController()
    await Promise.race([closed, waitFor(CLOSE_MS, clock, waited.signal)])
    waited.abort()
    await own.terminate()
  }
  let closing: Promise<void> | undefined
  return {
    isWanted: (entry, kind, partner) => isDrawn(entry, kind, partner, Math.random),
    offer: (exchange) =>
      safely(() => {
        const own = running()
        const refused = own === undefined ? (stop.signal.aborted ? 'closed' : 'failed') : undefined
        const id = exchanges.offer(exchange, refused)
        if (own === undefined || id === undefined) {
          wrote(exchange.client.partner.id, keysOf(exchange))
          return
        }
        try {
          // In the order in which they came.
          postWrites(own)
          const { exchange: posted, transfer } = toPostedExchange(exchange)
          own.post({ kind: 'offer', id, sinceMicros: nowMicros(), exchange: posted }, transfer)
          postMissed(own)
        } catch (cause) {
          exchanges.failed(id)
          report(cause)
        }
      }),
    wrote: (partner, stage, keys) =>
      safely(() => {
        if (isCompared(partner, stage)) wrote(partner.id, keys())
      }),
    throttled: (partner, stage) =>
      safely(() => {
        const isKnown = silences.leftMs(partner.id, 'v2') > SILENCE_MS - THROTTLED_MS
        if (isKnown || !isCompared(partner, stage)) return
        silences.note(partner.id, 'v2', SILENCE_MS)
        running()?.post({ kind: 'throttled', partner: partner.id })
      }),
    close: () => (closing ??= close()),
    reload: (next) => {
      config = next
      safely(() => thread?.post({ kind: 'settings', settings: settings() }))
    },
  }
}
