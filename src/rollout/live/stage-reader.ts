import { isDeepStrictEqual } from 'node:util'

import { type Clock, inTime, waitFor, type WallClock } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import type { Events } from '../../observability/events.ts'
import type { StagedPartner } from '../decide.ts'
import { percentOnV3, toSetting } from '../stage.ts'
import type { Acknowledgement, RolloutSnapshot } from '../store/read-snapshot.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import {
  afterRead,
  type ClockReading,
  drainedPartners,
  encodeKnown,
  gapMs,
  type KeptStages,
  type KnownStages,
  nothingKnown,
  parseKnown,
  readClocks,
  type RevisedSetting,
  settingsOf,
  type StageView,
} from './known-stages.ts'

export interface ReaderOptions {
  readonly store: Pick<RolloutStore, 'snapshot' | 'begin' | 'acknowledge' | 'forget' | 'noteUnrecorded'>
  /** Returns the number of this instance's lease, or `undefined` if other instances may have declared this instance dead. */
  readonly instance: () => number | undefined
  /** Takes a new lease. Never rejects. */
  readonly renewLease: () => Promise<unknown>
  readonly clock: WallClock
  readonly kept: KeptStages
  readonly partners: () => Iterable<StagedPartner>
  readonly events: Pick<
    Events,
    'stageChanged' | 'stagesStale' | 'stagesFresh' | 'trailDamaged' | 'stagesNotKept'
  >
  /**
   * How long the stages that were read stay valid, in milliseconds. This time must be shorter than the lease, so that the lease that was
   * held at the read is still valid when the stages expire.
   */
  readonly staleAfterMs: number
  /** How long V2 serves at `shadow` without the store, in milliseconds. */
  readonly resendWindowMs: number
}

/** The state of a reader at one moment. The value is never changed in place. */
interface ReaderState {
  readonly known: KnownStages
  /** Increases if other instances may have declared this instance dead between two reads, which makes decisions of earlier epochs invalid. */
  readonly leaseEpoch: number
  readonly startedAt: ClockReading
  /** When the latest completed query of the store was started, whether or not the store responded. */
  readonly lastAsked: ClockReading | undefined
  readonly lastAnswered: ClockReading | undefined
  readonly isStale: boolean
  readonly acknowledged: ReadonlyMap<string, Acknowledgement>
  /** When V2 last received a write of a partner without the journal's knowledge. The entry is removed once the store has recorded it. */
  readonly unrecorded: ReadonlyMap<string, ClockReading>
}

/** Counts those writes in progress of a partner that at least one of the settings would put on the other side. */
type CountMisplaced = (
  partner: string,
  settings: readonly RevisedSetting[],
) => { readonly v2: number; readonly v3: number }

const POLL_MS = 500
/** How long the reader waits for a response of the store before it sends another query, in milliseconds. */
export const PATIENCE_MS = 1_000

/** Creates the reader of one instance, which reads and acknowledges stages. Calls `onAsked` after each query of the store. */
export function createStageReader(options: ReaderOptions, misplaced: CountMisplaced, onAsked: () => void) {
  const { store, clock, kept, events, instance, staleAfterMs } = options
  // Reads the store more often if the lease is short, because the stages then stay valid only for a short time.
  const everyMs = Math.min(POLL_MS, staleAfterMs / 4)
  const patienceMs = Math.min(PATIENCE_MS, staleAfterMs / 2)
  let state: ReaderState = {
    known: nothingKnown,
    leaseEpoch: 0,
    startedAt: readClocks(clock),
    lastAsked: undefined,
    lastAnswered: undefined,
    isStale: false,
    acknowledged: new Map(),
    unrecorded: new Map(),
  }
  let isStopped = false

  const update = (change: Partial<ReaderState>): void => {
    const before = state
    state = { ...state, ...change }
    const { view } = state.known
    if (view !== before.known.view && view !== undefined) reportView(before.known.view, view)
    if (state.isStale !== before.isStale) events[state.isStale ? 'stagesStale' : 'stagesFresh']()
  }
  const reportView = (before: StageView | undefined, view: StageView): void => {
    const settings = before && settingsOf(before, options.partners())
    for (const [partner, { setting }] of view.partners) {
      const known = settings?.get(partner)
      if (setting === undefined || known?.revision === setting.revision) continue
      const { stage: to, revision } = setting
      const percent = percentOnV3(setting)
      const source = view.asked === undefined ? 'kept' : 'store'
      events.stageChanged({ partner, from: known?.stage ?? null, to, percent, revision, source })
    }
    if (!view.isTrailContinued && before?.isTrailContinued !== false) events.trailDamaged()
  }
  const unreadMs = (): number => gapMs(state.known.view?.asked ?? state.startedAt, readClocks(clock))

  const accept = (snapshot: RolloutSnapshot, asked: ClockReading, lease: number | undefined): void => {
    const { partners, resendWindowMs } = options
    const read = { snapshot, asked, lease, partners: partners(), resendWindowMs }
    const before = state.known.view
    const known = afterRead(state.known, read)
    const isUnbroken =
      before?.asked !== undefined &&
      gapMs(before.asked, asked) < staleAfterMs &&
      known.view?.instance !== undefined &&
      known.view.instance === before.instance
    const own = snapshot.acknowledgements.filter((row) => row.instance === lease)
    const acknowledged = new Map(own.map((row) => [row.partner, row]))
    const leaseEpoch = isUnbroken ? state.leaseEpoch : state.leaseEpoch + 1
    update({ known, leaseEpoch, isStale: false, acknowledged })
  }
  const questionEnded = (asked: ClockReading): void => {
    const isLater = state.lastAsked === undefined || asked.monotonicMs >= state.lastAsked.monotonicMs
    update({
      lastAsked: isLater ? asked : state.lastAsked,
      isStale: state.isStale || unreadMs() >= staleAfterMs,
    })
    onAsked()
  }
  /** Stores the settings with which partners begin. Returns true if a setting was new. */
  const begin = async ({ partners, begins }: RolloutSnapshot): Promise<boolean> => {
    const fresh = [...options.partners()].filter(({ id }) => !begins.has(id) && !partners.get(id)?.state)
    for (const { id, fileStage } of fresh) await store.begin(id, toSetting(fileStage))
    return fresh.length > 0
  }
  let askedLast = state.startedAt
  const askStore = async (): Promise<void> => {
    const own = readClocks(clock)
    askedLast = own
    // A commit does not wait for an instance without a lease, so the instance takes a lease before it reads.
    if (instance() === undefined) await options.renewLease()
    const { view } = state.known
    const left = drainedPartners(state.known)
    const [asked, lease] = [readClocks(clock), instance()]
    try {
      const snapshot = await store.snapshot(view?.trail, left)
      if (isStopped) return
      update({ lastAnswered: readClocks(clock) })
      const latest = (await begin(snapshot)) ? await store.snapshot(view?.trail, left) : snapshot
      // Uses a response only if no other response came since the query began, because concurrent queries may be answered in any order.
      if (state.known.view === view) accept(latest, asked, lease)
      else polling.now()
    } catch {
      // Ignores the error, because the journal itself reports why it cannot be read.
    }
    // A stopped instance must neither save nor acknowledge the stages that it reads.
    if (isStopped) return
    questionEnded(own)
    publishSoon()
  }
  const onLate = (): void => {
    if (!isStopped) questionEnded(askedLast)
  }
  const polling = createPolling({ clock, everyMs, patienceMs, ask: askStore, onLate })

  let saved = encodeKnown(nothingKnown)
  /** Saves the known stages, then acknowledges them. In this order, a restart never forgets a stage on which other instances rely. */
  const publishOnce = async (): Promise<void> => {
    const { view } = state.known
    const text = encodeKnown(state.known)
    if (text !== saved) {
      try {
        await kept.save(text)
      } catch {
        events.stagesNotKept()
        return
      }
      saved = text
    }
    // Reports unrecorded writes before the acknowledgement. The acknowledgement may allow a change, and unrecorded writes decide whether
    // the change is too early.
    for (const [partner, at] of state.unrecorded) await noteInStore(partner, at)
    const lease = instance()
    if (view?.asked === undefined || view !== state.known.view) return
    if (lease === undefined || lease !== view.instance) return
    const rows = acknowledgementsOf(view).filter(
      (row) => !isDeepStrictEqual({ instance: lease, ...row }, state.acknowledged.get(row.partner)),
    )
    if (rows.length === 0) return
    await withTimeout(store.acknowledge(lease, rows))
    polling.now()
  }
  const noteInStore = async (partner: string, at: ClockReading): Promise<void> => {
    const now = readClocks(clock)
    // Uses the smaller of the two times, because a time that is too recent only delays a step forward.
    const agoMs = Math.max(0, Math.min(now.monotonicMs - at.monotonicMs, now.wallMs - at.wallMs))
    await withTimeout(store.noteUnrecorded(partner, agoMs))
    const unrecorded = new Map(state.unrecorded)
    if (unrecorded.get(partner) === at) unrecorded.delete(partner)
    update({ unrecorded })
  }
  /**
   * Returns for each partner the revision at which this instance serves the partner, the change for which the instance holds back writes,
   * and the number of writes in progress on the wrong side.
   */
  const acknowledgementsOf = (view: StageView): readonly Acknowledgement[] =>
    [...settingsOf(view, options.partners())].map(([partner, setting]) => {
      const pending = view.partners.get(partner)?.pending
      const writes = misplaced(partner, pending === undefined ? [setting] : [setting, pending])
      const { revision } = setting
      return {
        partner,
        revision,
        pendingRevision: pending?.revision,
        writesV2: writes.v2,
        writesV3: writes.v3,
      }
    })
  /** Treats a late response as a failure, because a connection may hang. */
  const withTimeout = (answer: Promise<void>): Promise<void> =>
    inTime(
      answer,
      patienceMs,
      clock,
      new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal did not respond in time.'),
    )
  let publishing = Promise.resolve()
  let next: Promise<void> | undefined
  /**
   * Saves and acknowledges the stages once the call of `publishOnce` in progress has ended. All calls until then share one call of
   * `publishOnce`. After a failure, the next query of the store leads to another call.
   */
  const publish = (): Promise<void> =>
    (next ??= publishing.then(() => {
      next = undefined
      publishing = publishOnce().catch(() => undefined)
      return publishing
    }))
  const publishSoon = (): void => {
    publish().catch(() => undefined)
  }
  return {
    state: (): ReaderState => state,
    /** Returns the time in milliseconds since the stages were read, or since the start if they were never read. */
    unreadMs,
    /** Polls immediately if the process was paused, because no timer runs during a pause. */
    pollNow: (): void => {
      const { lastAsked } = state
      if (lastAsked === undefined || gapMs(lastAsked, readClocks(clock)) > everyMs + patienceMs) polling.now()
    },
    /** Remembers that V2 received a write of the partner without the journal's knowledge. */
    noteUnrecorded: (partner: string): void =>
      update({ unrecorded: new Map(state.unrecorded).set(partner, readClocks(clock)) }),
    writeEnded: (partner: string): void => {
      if (!isStopped && state.known.view?.partners.get(partner)?.pending !== undefined) publishSoon()
    },
    start: async (): Promise<void> => {
      const text = await kept.load().catch(() => undefined)
      const known = parseKnown(text ?? '') ?? nothingKnown
      saved = encodeKnown(known)
      update({ startedAt: readClocks(clock), known })
      await polling.start()
    },
    stop: async (): Promise<void> => {
      isStopped = true
      polling.stop()
      await publish()
      const lease = instance()
      if (lease !== undefined) await withTimeout(store.forget(lease)).catch(() => undefined)
    },
  }
}

interface PollingOptions {
  readonly clock: Clock
  readonly everyMs: number
  /** After this time a query counts as late. Its response still counts. */
  readonly patienceMs: number
  /** Queries the store. Never rejects and always ends, because the database limits the time of each statement. */
  readonly ask: () => Promise<void>
  readonly onLate: () => void
}

/** Maximum number of open queries. Further queries would only fill the queue of the database. */
const MAX_OPEN = 4

function createPolling({ clock, everyMs, patienceMs, ask, onLate }: PollingOptions) {
  let isStopped = false
  let pause = new AbortController()
  let open = 0
  /** Queries the store. Returns true if the query ended in time. */
  const question = async (): Promise<boolean> => {
    open += 1
    const answer = ask().then(() => {
      open -= 1
      return true
    })
    const answered = new AbortController()
    const late = waitFor(patienceMs, clock, answered.signal).then(() => false)
    return Promise.race([answer, late]).finally(() => answered.abort())
  }
  const run = async (onAsked: () => void): Promise<void> => {
    while (!isStopped) {
      pause = new AbortController()
      const isLate = open < MAX_OPEN && !(await question())
      onAsked()
      if (isLate) onLate()
      else if (!pause.signal.aborted) await waitFor(everyMs, clock, pause.signal)
    }
  }
  return {
    /** Resolves once the first query has ended or is late. */
    start: (): Promise<void> =>
      new Promise((resolve, reject) => {
        run(resolve).catch(reject)
      }),
    /** Polls immediately. A poll that is already in flight may return stale data. */
    now: (): void => pause.abort(),
    stop: (): void => {
      isStopped = true
      pause.abort()
    },
  }
}
