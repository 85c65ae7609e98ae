import {
  decide,
  type KnownWrite,
  type StagedPartner,
  type StagedRequest,
  type StageEntry,
} from '../decide.ts'
import { isServedByV2, isWriteKind, shareOf, type Side, type StageSetting } from '../stage.ts'
import { type Attempt, createHeldWrites, type HeldMetrics, unknownStage, type Wait } from './held-writes.ts'
import {
  beginOf,
  type ClockReading,
  gapMs,
  isClean,
  readClocks,
  type RevisedSetting,
} from './known-stages.ts'
import { createStageReader, PATIENCE_MS, type ReaderOptions } from './stage-reader.ts'

export interface StoredStagesOptions extends ReaderOptions {
  /** All instances have the same; undefined while the journal cannot be opened. */
  readonly secret: () => Uint8Array | undefined
  readonly metrics: HeldMetrics
  /** How long a change may take that writes wait for. */
  readonly drainMs: number
  /** Writes that may wait. Default 1,000. */
  readonly maxHeld?: number
}

/** Numbers of writes on each side. */
type SideCounts = Readonly<Record<Side, number>>

export type StoredStages = ReturnType<typeof createStoredStages>

/** What decides a request, besides itself. */
interface Base {
  readonly setting: RevisedSetting
  readonly pending: StageSetting | undefined
  /** Read in time, under the lease that is held: no change can have been committed since without this instance. */
  readonly isCurrent: boolean
}

/** A write waits for longer than a change may take, with what is read and committed around that. */
const BEYOND_DRAIN_MS = 5_000
/** How long a write waits until the stage is read. */
const STALE_MS = 2_000
/** The store is asked every half second: two answers of a slow one are not further apart. */
const ANSWERED_MS = 1_500

/** Creates the stages that live in the store, as one instance sees them. */
export function createStoredStages(options: StoredStagesOptions) {
  const { clock, metrics, instance, staleAfterMs, secret, drainMs, maxHeld = 1_000 } = options
  const sideOf = (setting: StageSetting, partner: string, request: StagedRequest): Side | undefined =>
    decide(setting, partner, request, secret)
  const underWay = createUnderWay((partner) => reader.left(partner))
  const misplaced = (partner: string, settings: readonly StageSetting[]): SideCounts =>
    underWay.count(partner, ({ request, side }) =>
      settings.some((setting) => sideOf(setting, partner, request) !== side),
    )
  const limitsMs = { changing: drainMs + BEYOND_DRAIN_MS, stale: STALE_MS, asking: PATIENCE_MS }
  const held = createHeldWrites({ clock, max: maxHeld, limitsMs, metrics })
  const reader = createStageReader(options, misplaced, () => held.retry())

  const isWithin = (since: ClockReading | undefined, ms: number): boolean =>
    since !== undefined && gapMs(since, readClocks(clock)) < ms
  /** True while no change can have been committed without this instance since the stages were read. */
  const isRead = (): boolean => {
    const { view } = reader.state().known
    if (view?.instance === undefined || view.instance !== instance()) return false
    return isWithin(view.asked, staleAfterMs)
  }
  /** True where the store was asked lately, whether it answered or not: this process has not stood still since. */
  const wasAsked = (): boolean => isWithin(reader.state().lastAsked, staleAfterMs)

  /** Undefined: the stage in the store is not known. */
  const baseOf = (partner: StagedPartner): Base | undefined => {
    const { id } = partner
    const { view } = reader.state().known
    if (view === undefined || view.damaged.has(id)) return undefined
    const known = view.partners.get(id)
    // Its stage may be gone with the trail: the one of the file does not count.
    if (known?.setting === undefined && !view.trailIsSound) return undefined
    // Where it begins is kept first: another instance may have another file.
    const isKnown = known?.setting !== undefined || view.begins.has(id)
    const isCurrent = isKnown && (known?.sound ?? true) && isRead()
    return { setting: known?.setting ?? beginOf(partner, view), pending: known?.pending, isCurrent }
  }
  /** Returns why a write has to wait for the store, or `undefined` if it need not wait. */
  const waitFor = ({ setting: { stage }, isCurrent }: Base, last: boolean): Wait | undefined => {
    if (isCurrent) return undefined
    if (!isServedByV2(stage)) return 'stale'
    if (stage === 'shadow' && reader.unreadMs() > options.resendWindowMs) return 'stale'
    // After a pause the store may answer: it is asked first. While it cannot be reached, V2 is served on.
    return last || wasAsked() ? undefined : 'asking'
  }

  const letIn = (partner: StagedPartner, request: StagedRequest, side: Side, base: Base): StageEntry => {
    const { era } = reader.state()
    const { stage, revision } = base.setting
    const isWrite = isWriteKind(request.kind)
    const known = side === 'v2' ? knownOf(partner.id, base) : 'nothing'
    // The partner may have left `legacy` by now: should this come again, V3 would not know it.
    const isUnrecorded = isWrite && side === 'v2' && known === 'nothing'
    const note = (now: Base | undefined): void => {
      const isLegacyStill = now?.isCurrent === true && now.setting.revision === revision
      if (!isLegacyStill) reader.noteUnrecorded(partner.id)
    }
    if (isUnrecorded) note(base)
    return {
      side,
      stage,
      revision,
      known,
      isCurrent: () => reader.state().era === era && (isRead() || (isServedByV2(stage) && wasAsked())),
      isStoreAnswering: () => isWithin(reader.state().lastAnswered, ANSWERED_MS),
      // Its client may come again from then on.
      leave: isWrite
        ? underWay.add(partner.id, { request, side }, () => isUnrecorded && note(baseOf(partner)))
        : () => undefined,
    }
  }
  const knownOf = (partner: string, { setting: { stage, revision }, pending }: Base): KnownWrite => {
    if (!isClean(reader.state().known, partner, revision)) return 'keys'
    // A step that is acknowledged may be committed long before that is read.
    if (stage === 'legacy') return pending === undefined ? 'nothing' : 'identity'
    return stage === 'shadow' ? 'identity' : 'keys'
  }

  const attemptWrite = (partner: StagedPartner, request: StagedRequest, last: boolean): StageEntry | Wait => {
    const base = baseOf(partner)
    if (base === undefined) return 'stale'
    const wait = waitFor(base, last)
    if (wait !== undefined) return wait
    const side = sideOf(base.setting, partner.id, request)
    if (side === undefined) return 'stale'
    if (base.pending !== undefined && sideOf(base.pending, partner.id, request) !== side) return 'changing'
    return letIn(partner, request, side, base)
  }
  const enterRead = (partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
    const base = baseOf(partner) ?? (request.kind === 'v3Path' ? anyStageOf(partner) : undefined)
    const side = base && sideOf(base.setting, partner.id, request)
    if (base !== undefined && side !== undefined) return letIn(partner, request, side, base)
    metrics.stageRefused({ partner: partner.id, reason: 'stale' })
    return Promise.reject(unknownStage('stale'))
  }

  return {
    /** As `LiveStages`. */
    enter: (partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
      if (!isWriteKind(request.kind)) return enterRead(partner, request)
      const attempt: Attempt = (last) => attemptWrite(partner, request, last)
      const first = attempt(false)
      if (typeof first !== 'string') return first
      if (first !== 'changing') reader.hurry()
      return held.wait({ partner: partner.id, unit: request.unit }, attempt, first)
    },
    /** Loads what was kept and begins to read; resolves once the store has answered, or is late. */
    start: () => reader.start(),
    /** Refuses what waits and stops reading. To be called once no request is under way. */
    stop: async (): Promise<void> => {
      held.stop()
      await reader.stop()
    },
    /** Notes in the store, as soon as it can be reached, that V2 was given a write which the journal does not know. */
    noteUnrecorded: (partner: string): void => reader.noteUnrecorded(partner),
    /** False while nothing is known: neither read nor kept. */
    isReady: (): boolean => reader.state().known.view !== undefined,
    /** The partners as they are served now. */
    describe: () => {
      const { view } = reader.state().known
      return [...options.partners()].map((partner) => {
        const { id } = partner
        const stored = view?.partners.get(id)
        const setting = stored?.setting ?? beginOf(partner, view)
        const source: 'kept' | 'store' = view?.asked === undefined ? 'kept' : 'store'
        return {
          partner: id,
          stage: setting.stage,
          percent: shareOf(setting),
          source: stored === undefined ? ('file' as const) : source,
          underWay: underWay.count(id),
          held: held.count(id),
        }
      })
    },
    /** Time since the stages were read, ms; undefined: not by this process. */
    viewAgeMs: (): number | undefined => {
      const asked = reader.state().known.view?.asked
      return asked && gapMs(asked, readClocks(clock))
    },
  }
}

/** Returns a stage for paths of V3, which go to V3 at every stage. */
const anyStageOf = ({ fileStage }: StagedPartner): Base => ({
  setting: { ...fileStage, stage: 'complete', revision: 0 },
  pending: undefined,
  isCurrent: false,
})

interface WriteUnderWay {
  readonly request: StagedRequest
  readonly side: Side
}

/** Creates the count of writes that were let in and are not over; `onLeft` is called for each that ends, after its own `atEnd`. */
function createUnderWay(onLeft: (partner: string) => void) {
  const writes = new Map<string, Set<WriteUnderWay>>()
  return {
    /** Counts a write until the returned function is called, which may be called again. */
    add: (partner: string, write: WriteUnderWay, atEnd: () => unknown): (() => void) => {
      const own = writes.get(partner) ?? new Set()
      writes.set(partner, own.add(write))
      return () => {
        if (!own.delete(write)) return
        if (own.size === 0 && writes.get(partner) === own) writes.delete(partner)
        atEnd()
        onLeft(partner)
      }
    },
    count: (partner: string, isCounted: (write: WriteUnderWay) => boolean = () => true): SideCounts => {
      const counts = { v2: 0, v3: 0 }
      for (const write of writes.get(partner) ?? []) if (isCounted(write)) counts[write.side] += 1
      return counts
    },
  }
}
