import { AdapterError } from '../../errors.ts'
import { beginSetting } from '../begin-setting.ts'
import type { StagedPartner } from '../live-stages.ts'
import type { StageSetting } from '../stage.ts'
import type { RolloutSnapshot } from '../store/rollout-store.ts'
import { toSetting } from '../store/stage-row.ts'
import { acknowledgementsOf, createAcknowledged } from './acknowledgements.ts'
import { type Cleanliness, createCleanliness } from './cleanliness.ts'
import { createKeptOverrides, type KeptOverrides } from './kept-overrides.ts'
import { encodeSnapshot, parseSnapshot } from './kept-snapshot.ts'
import type { StoredStagesOptions } from './options.ts'
import { createPolling } from './polling.ts'
import { elapsedMs, gapMs, readClocks, type Sighting } from './sighting.ts'
import { stepBackOf } from './step-back.ts'
import { createUnrecordedNotes } from './unrecorded-notes.ts'
import type { UnderWay } from './under-way.ts'
import { isSameView, type RevisedSetting, type StageView, toView } from './view.ts'

/** Reads the store for one instance, and acknowledges what it has read. */
export interface StageReader {
  /** As it was read last, or kept; undefined: neither. */
  view(): StageView | undefined
  /** Grows where others may have taken this instance for dead between two reads: what was decided before does not hold any longer. */
  era(): number
  /** When the store was last asked by a question that has ended, with or without an answer. */
  lastAsked(): Sighting | undefined
  /** When the store last answered. */
  lastAnswered(): Sighting | undefined
  /** Time since the stages were read; before that since the start. */
  unreadMs(): number
  isClean(partner: string, revision: number): boolean
  /** The setting of a partner that the store has no change of. */
  ofFile(partner: StagedPartner): RevisedSetting
  readonly overrides: Pick<KeptOverrides, 'over' | 'note'>
  /** Asks at once after a pause, in which no timer did. */
  hurry(): void
  /** V2 was given a write of the partner that the journal does not know. */
  noteUnrecorded(partner: string): void
  /** A write of the partner is over. */
  left(partner: string): void
  start(): Promise<void>
  stop(): Promise<void>
}

/** A question to the store. */
interface Question {
  readonly asked: Sighting
  readonly lease: number | undefined
  readonly askedAt: number
}

/** Creates the reader; `onAsked` is called after each question to the store. */
export function createStageReader(
  options: StoredStagesOptions,
  underWay: UnderWay,
  onAsked: () => void,
): StageReader {
  const { store, clock, kept, events, instance, pollMs = 500, patienceMs = 1_000 } = options
  const acknowledged = createAcknowledged()
  const notes = createUnrecordedNotes(clock)
  let overrides = createKeptOverrides([])
  let savedOverrides = 0
  let cleanliness: Cleanliness = createCleanliness([], options.resendWindowMs)
  let view: StageView | undefined
  let lastAsked: Sighting | undefined
  let lastAnswered: Sighting | undefined
  let startedAt = readClocks(clock)
  let isStale = false
  let hasSoundTrail = true
  /** Counts questions and answers, to tell whether a question was asked after an answer had come. */
  let turn = 0
  let takenAt = 0
  let era = 0
  /** True: what was saved is older than the view. */
  let isUnsaved = false
  let publishing: Promise<void> | undefined
  let hasNews = false
  const isUnpublished = (): boolean => hasNews
  let isStopped = false

  const atFile = ({ fileStage }: StagedPartner): StageSetting => ({
    stage: options.unknownBeginAt ?? fileStage.stage,
    percent: fileStage.percent,
    always: fileStage.always,
    never: fileStage.never,
  })
  const ofFile = (partner: StagedPartner): RevisedSetting => ({
    ...toSetting(beginSetting(atFile(partner), view?.begins.get(partner.id))),
    revision: 0,
  })
  /** All partners that this instance may be asked about, also those that its file does not have: others wait for its word. */
  const settingsOf = ({ partners }: StageView): ReadonlyMap<string, RevisedSetting> => {
    const settings = new Map<string, RevisedSetting>()
    for (const partner of options.partners()) settings.set(partner.id, ofFile(partner))
    for (const [partner, { setting, pending }] of partners) {
      if (setting !== undefined) settings.set(partner, setting)
      // Its first change, and the file of this instance does not have it: no write of it is let in here.
      else if (pending !== undefined && !settings.has(partner))
        settings.set(partner, { ...pending, revision: 0 })
    }
    return settings
  }
  const unreadMs = (): number => elapsedMs(clock, view?.asked ?? startedAt)

  const reportChanges = (next: StageView): void => {
    const before = view && settingsOf(view)
    for (const [partner, { setting }] of next.partners) {
      const known = before?.get(partner)
      if (setting === undefined || known?.revision === setting.revision) continue
      const { stage: to, percent, revision } = setting
      const source = next.asked === undefined ? 'kept' : 'store'
      events.changed({ partner, from: known?.stage, to, percent, revision, source })
    }
  }
  const take = (snapshot: RolloutSnapshot, { asked, lease, askedAt }: Question): void => {
    // Questions under way together may have been answered in any order.
    if (askedAt < takenAt) {
      polling.now()
      return
    }
    takenAt = turn += 1
    const next = toView(snapshot, asked, lease, view)
    const isUnbroken =
      view?.asked !== undefined &&
      gapMs(view.asked, asked) < options.staleAfterMs &&
      next.instance !== undefined &&
      next.instance === view.instance
    if (!isUnbroken) era += 1
    const isNew = !isSameView(view, next)
    reportChanges(next)
    view = next
    const settings = settingsOf(next)
    const becameClean = cleanliness.observe(snapshot, settings)
    overrides.observe(settings)
    if (isNew || becameClean) isUnsaved = true
    acknowledged.observe(snapshot, lease, asked.monotonicMs)
    if (isStale) events.fresh()
    isStale = false
    if (!next.trailIsSound && hasSoundTrail) events.trailDamaged()
    hasSoundTrail = next.trailIsSound
    if (isNew) polling.now()
  }
  const ended = (asked: Sighting): void => {
    if (lastAsked === undefined || asked.monotonicMs >= lastAsked.monotonicMs) lastAsked = asked
    if (!isStale && unreadMs() >= options.staleAfterMs) {
      isStale = true
      events.stale()
    }
    onAsked()
  }
  /** True: the store has learned where a partner begins. */
  const begin = async ({ partners, begins }: RolloutSnapshot): Promise<boolean> => {
    const fresh = [...options.partners()].filter(({ id }) => !begins.has(id) && !partners.get(id)?.state)
    for (const partner of fresh) await store.begin(partner.id, toSetting(atFile(partner)))
    return fresh.length > 0
  }
  /** Takes partners back in the store that their file has lower. */
  const stepBack = async (snapshot: RolloutSnapshot): Promise<void> => {
    for (const partner of options.partners()) {
      const change = stepBackOf(overrides.over(partner), snapshot)
      if (change === undefined) continue
      await store.apply(change, 'back')
      polling.now()
    }
  }
  let askedLast = startedAt
  const ask = async (): Promise<void> => {
    const own = readClocks(clock)
    askedLast = own
    // Without a lease a change is committed without asking this instance: it takes one first.
    if (instance() === undefined) await options.renewLease()
    const question = { lease: instance(), asked: readClocks(clock), askedAt: (turn += 1) }
    try {
      const snapshot = await store.snapshot(view?.trail)
      if (isStopped) return
      lastAnswered = readClocks(clock)
      take((await begin(snapshot)) ? await store.snapshot(view?.trail) : snapshot, question)
      await stepBack(snapshot)
    } catch {
      // The journal reports why it cannot be read.
    }
    // Otherwise an instance that has left would keep and acknowledge what it read.
    if (isStopped) return
    ended(own)
    void publish()
  }
  const polling = createPolling({
    clock,
    everyMs: pollMs,
    patienceMs,
    ask,
    onLate: () => ended(askedLast),
  })

  const save = async (): Promise<boolean> => {
    const version = overrides.version()
    isUnsaved = false
    try {
      await kept.save(encodeSnapshot({ view, clean: cleanliness.list(), overrides: overrides.list() }))
      savedOverrides = version
      return true
    } catch {
      isUnsaved = true
      events.keepFailed()
      return false
    }
  }
  /** Keeps the view, then says what is served by it: in this order, so that a restart does not forget what others count on. */
  const publishOnce = async (): Promise<void> => {
    // Also without the store: an override that is taken out of the file before the next start still counts then.
    if (savedOverrides !== overrides.version() && !(await save())) return
    // Before an acknowledgement: a change that it allows is judged by them.
    await notes.flush((partner, agoMs) => inTime(store.noteUnrecorded(partner, agoMs)))
    const current = view
    if (current?.asked === undefined) return
    if (isUnsaved && !(await save())) return
    const lease = instance()
    if (lease === undefined || lease !== current.instance || current !== view) return
    const rows = acknowledged.unsaid(lease, acknowledgementsOf(current, settingsOf(current), underWay))
    if (rows.length === 0) return
    await inTime(store.acknowledge(lease, rows))
    acknowledged.said(lease, rows, clock.nowMs())
    polling.now()
  }
  /** A connection may hang: what comes too late counts as not said. */
  const inTime = (answer: Promise<void>): Promise<void> =>
    new Promise((resolve, reject) => {
      const cancel = clock.after(patienceMs, () => {
        reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal did not answer in time.'))
      })
      answer.then(resolve, reject).finally(cancel)
    })
  const publishAll = async (): Promise<void> => {
    while (isUnpublished()) {
      hasNews = false
      // Said again after the next question.
      await publishOnce().catch(() => undefined)
    }
    publishing = undefined
  }
  /** Resolves once all that there is to say has been said. */
  const publish = (): Promise<void> => {
    hasNews = true
    return (publishing ??= publishAll())
  }
  return {
    view: () => view,
    era: () => era,
    lastAsked: () => lastAsked,
    lastAnswered: () => lastAnswered,
    unreadMs,
    isClean: (partner, revision) => cleanliness.isClean(partner, revision),
    ofFile,
    overrides: {
      over: (partner) => overrides.over(partner),
      note: (partner, setting) => overrides.note(partner, setting),
    },
    hurry: () => {
      if (lastAsked === undefined || elapsedMs(clock, lastAsked) > pollMs + patienceMs) polling.now()
    },
    noteUnrecorded: (partner) => notes.add(partner),
    left: (partner) => {
      if (!isStopped && view?.partners.get(partner)?.pending !== undefined) void publish()
    },
    start: async () => {
      startedAt = readClocks(clock)
      const text = await kept.load().catch(() => undefined)
      const snapshot = text === undefined ? undefined : parseSnapshot(text)
      if (snapshot !== undefined) {
        if (snapshot.view !== undefined) reportChanges(snapshot.view)
        view = snapshot.view
        overrides = createKeptOverrides(snapshot.overrides)
        cleanliness = createCleanliness(snapshot.clean, options.resendWindowMs)
      }
      await polling.start()
    },
    stop: async () => {
      isStopped = true
      polling.stop()
      await publish()
      const lease = instance()
      if (lease !== undefined) await inTime(store.leave(lease)).catch(() => undefined)
    },
  }
}
