import { isDeepStrictEqual } from 'node:util'

import { type Clock, inTime, waitFor, type WallClock } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import type { Events } from '../../observability/events.ts'
import type { StagedPartner } from '../decide.ts'
import { shareOf, toSetting } from '../stage.ts'
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
  readonly store: Pick<RolloutStore, 'snapshot' | 'begin' | 'acknowledge' | 'leave' | 'noteUnrecorded'>
  /** The number of the lease; undefined: others may have taken this instance for dead. */
  readonly instance: () => number | undefined
  /** Takes a lease again; never rejects. */
  readonly renewLease: () => Promise<unknown>
  readonly clock: WallClock
  readonly kept: KeptStages
  /** Those of the configuration as it is now. */
  readonly partners: () => Iterable<StagedPartner>
  readonly events: Pick<
    Events,
    'stageChanged' | 'stagesStale' | 'stagesFresh' | 'trailDamaged' | 'stagesNotKept'
  >
  /** What was read longer ago does not count. The store must count with the lease that was held at a read for at least as long. */
  readonly staleAfterMs: number
  /** How long V2 is served at `shadow` without the store. */
  readonly resendWindowMs: number
}

/** The state of a reader at one moment; a later one is another value. */
interface ReaderState {
  readonly known: KnownStages
  /** Grows where others may have taken this instance for dead between two reads: what was decided before does not hold any longer. */
  readonly era: number
  readonly startedAt: ClockReading
  /** When the store was last asked by a question that has ended, with or without an answer. */
  readonly lastAsked: ClockReading | undefined
  readonly lastAnswered: ClockReading | undefined
  /** The stages could not be read for longer than they count. */
  readonly isStale: boolean
  /** What the store has from this instance, by partner. */
  readonly acknowledged: ReadonlyMap<string, Acknowledgement>
  /** When V2 was last given a write of a partner that the journal does not know, until the store has been told. */
  readonly unrecorded: ReadonlyMap<string, ClockReading>
}

/** Counts the writes of a partner under way that one of the settings would put on the other side. */
type CountMisplaced = (
  partner: string,
  settings: readonly RevisedSetting[],
) => { readonly v2: number; readonly v3: number }

const POLL_MS = 500
/** After this time the store is asked anew. */
export const PATIENCE_MS = 1_000

/** Creates what reads the store for one instance and acknowledges what it has read; `onAsked` is called after each question to the store. */
export function createStageReader(options: ReaderOptions, misplaced: CountMisplaced, onAsked: () => void) {
  const { store, clock, kept, events, instance, staleAfterMs } = options
  // With a short lease the stages count for a short time.
  const everyMs = Math.min(POLL_MS, staleAfterMs / 4)
  const patienceMs = Math.min(PATIENCE_MS, staleAfterMs / 2)
  let state: ReaderState = {
    known: nothingKnown,
    era: 0,
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
      const percent = shareOf(setting)
      const source = view.asked === undefined ? 'kept' : 'store'
      events.stageChanged({ partner, from: known?.stage ?? null, to, percent, revision, source })
    }
    if (!view.trailIsSound && before?.trailIsSound !== false) events.trailDamaged()
  }
  const unreadMs = (): number => gapMs(state.known.view?.asked ?? state.startedAt, readClocks(clock))

  const take = (snapshot: RolloutSnapshot, asked: ClockReading, lease: number | undefined): void => {
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
    update({ known, era: isUnbroken ? state.era : state.era + 1, isStale: false, acknowledged })
  }
  const ended = (asked: ClockReading): void => {
    const isLater = state.lastAsked === undefined || asked.monotonicMs >= state.lastAsked.monotonicMs
    update({
      lastAsked: isLater ? asked : state.lastAsked,
      isStale: state.isStale || unreadMs() >= staleAfterMs,
    })
    onAsked()
  }
  /** True: the store has learned where a partner begins. */
  const begin = async ({ partners, begins }: RolloutSnapshot): Promise<boolean> => {
    const fresh = [...options.partners()].filter(({ id }) => !begins.has(id) && !partners.get(id)?.state)
    for (const { id, fileStage } of fresh) await store.begin(id, toSetting(fileStage))
    return fresh.length > 0
  }
  let askedLast = state.startedAt
  const ask = async (): Promise<void> => {
    const own = readClocks(clock)
    askedLast = own
    // Without a lease a change is committed without asking this instance: it takes one first.
    if (instance() === undefined) await options.renewLease()
    const { view } = state.known
    const left = drainedPartners(state.known)
    const [asked, lease] = [readClocks(clock), instance()]
    try {
      const snapshot = await store.snapshot(view?.trail, left)
      if (isStopped) return
      update({ lastAnswered: readClocks(clock) })
      const latest = (await begin(snapshot)) ? await store.snapshot(view?.trail, left) : snapshot
      // Questions under way together may have been answered in any order: one from before the last answer does not count.
      if (state.known.view === view) take(latest, asked, lease)
      else polling.now()
    } catch {
      // The journal reports why it cannot be read.
    }
    // Otherwise an instance that has left would keep and acknowledge what it read.
    if (isStopped) return
    ended(own)
    publishSoon()
  }
  const onLate = (): void => {
    if (!isStopped) ended(askedLast)
  }
  const polling = createPolling({ clock, everyMs, patienceMs, ask, onLate })

  let saved = encodeKnown(nothingKnown)
  /** Keeps what is known, then says what is served by it: in this order, so that a restart does not forget what others count on. */
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
    // Before an acknowledgement: a change that it allows is judged by them.
    for (const [partner, at] of state.unrecorded) await noteInStore(partner, at)
    const lease = instance()
    if (view?.asked === undefined || view !== state.known.view) return
    if (lease === undefined || lease !== view.instance) return
    const rows = acknowledgementsOf(view).filter(
      (row) => !isDeepStrictEqual({ instance: lease, ...row }, state.acknowledged.get(row.partner)),
    )
    if (rows.length === 0) return
    await inPatience(store.acknowledge(lease, rows))
    polling.now()
  }
  const noteInStore = async (partner: string, at: ClockReading): Promise<void> => {
    const now = readClocks(clock)
    // By the clock that says less: a note that is too new only delays a step forward.
    const agoMs = Math.max(0, Math.min(now.monotonicMs - at.monotonicMs, now.wallMs - at.wallMs))
    await inPatience(store.noteUnrecorded(partner, agoMs))
    const unrecorded = new Map(state.unrecorded)
    if (unrecorded.get(partner) === at) unrecorded.delete(partner)
    update({ unrecorded })
  }
  /**
   * What this instance has to say of each partner: the revision that it serves by, the change that it holds writes for, and the writes
   * under way that are not where they belong by these.
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
  /** A connection may hang: what comes too late counts as not said. */
  const inPatience = (answer: Promise<void>): Promise<void> =>
    inTime(
      answer,
      patienceMs,
      clock,
      new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal did not answer in time.'),
    )
  let publishing = Promise.resolve()
  let next: Promise<void> | undefined
  /** Publishes after the run that is under way, once for all calls until then. What fails is said again after the next question. */
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
    /** Time since the stages were read; before that since the start. */
    unreadMs,
    /** Asks at once after a pause, in which no timer did. */
    hurry: (): void => {
      const { lastAsked } = state
      if (lastAsked === undefined || gapMs(lastAsked, readClocks(clock)) > everyMs + patienceMs) polling.now()
    },
    /** V2 was given a write of the partner that the journal does not know. */
    noteUnrecorded: (partner: string): void =>
      update({ unrecorded: new Map(state.unrecorded).set(partner, readClocks(clock)) }),
    /** A write of the partner is over. */
    left: (partner: string): void => {
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
      if (lease !== undefined) await inPatience(store.leave(lease)).catch(() => undefined)
    },
  }
}

interface PollingOptions {
  readonly clock: Clock
  /** Between an answer and the next question. */
  readonly everyMs: number
  /** A question that takes longer is asked anew; its answer still counts when it comes. */
  readonly patienceMs: number
  /** Never rejects, and ends in the end: the database limits each statement. */
  readonly ask: () => Promise<void>
  /** A question took too long. */
  readonly onLate: () => void
}

/** Questions without an answer: more would only fill the queue of the database. */
const MAX_OPEN = 4

/** Creates a question that is repeated until it is stopped. */
function createPolling({ clock, everyMs, patienceMs, ask, onLate }: PollingOptions) {
  let isStopped = false
  let pause = new AbortController()
  let open = 0
  /** True: it was answered in time. */
  const question = async (): Promise<boolean> => {
    open += 1
    const answer = ask().then(() => {
      open -= 1
      return true
    })
    const ended = new AbortController()
    const late = waitFor(patienceMs, clock, ended.signal).then(() => false)
    return Promise.race([answer, late]).finally(() => ended.abort())
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
    /** Begins; resolves once the first answer is there, or is late. */
    start: (): Promise<void> =>
      new Promise((resolve, reject) => {
        run(resolve).catch(reject)
      }),
    /** Asks at once; a question that is under way does not count, since it may have been answered before. */
    now: (): void => pause.abort(),
    stop: (): void => {
      isStopped = true
      pause.abort()
    },
  }
}
