import {
  decide,
  type KnownWrite,
  type StagedPartner,
  type StagedRequest,
  type StageEntry,
} from '../decide.ts'
import {
  isServedByV2,
  isWriteKind,
  lowered,
  shareOf,
  type Side,
  type Stage,
  type StageSetting,
} from '../stage.ts'
import { type Attempt, createHeldWrites, type HeldMetrics, unknownStage, type Wait } from './held-writes.ts'
import {
  type ClockReading,
  gapMs,
  isClean,
  ofFile,
  overridden,
  readClocks,
  type RevisedSetting,
} from './known-stages.ts'
import { createStageReader, PATIENCE_MS, type ReaderOptions, type StageSource } from './stage-reader.ts'

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
  // Without an override: it holds a step forward up.
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
    return { setting: known?.setting ?? ofFile(partner, view), pending: known?.pending, isCurrent }
  }
  /** The setting that counts for a request; undefined: it is not known. */
  const settingOf = ({ fileStage }: StagedPartner, base: Base | undefined): StageSetting | undefined => {
    if (base !== undefined) return lowered(base.setting, fileStage)
    const { override } = fileStage
    // Whatever the stage is, such an override makes it one that V2 serves.
    return override !== undefined && isServedByV2(override) ? { ...fileStage, stage: override } : undefined
  }
  /** Why a write of a stage has to wait for the store; undefined: it need not. */
  const waitFor = (stage: Stage, base: Base | undefined, last: boolean): Wait | undefined => {
    if (base?.isCurrent === true) return undefined
    if (!isServedByV2(stage)) return 'stale'
    if (stage === 'shadow' && reader.unreadMs() > options.resendWindowMs) return 'stale'
    // After a pause the store may answer: it is asked first. While it cannot be reached, V2 is served on.
    return last || wasAsked() ? undefined : 'asking'
  }

  const letIn = (
    partner: StagedPartner,
    request: StagedRequest,
    { side, stage, base }: { side: Side; stage: Stage; base: Base | undefined },
  ): StageEntry => {
    const { era } = reader.state()
    const isWrite = isWriteKind(request.kind)
    const known = side === 'v2' ? knownOf(partner.id, base) : 'nothing'
    // The partner may have left `legacy` by now: should this come again, V3 would not know it.
    const isUnrecorded = isWrite && side === 'v2' && known === 'nothing'
    const note = (now: Base | undefined): void => {
      const isLegacyStill = now?.isCurrent === true && now.setting.revision === base?.setting.revision
      if (!isLegacyStill) reader.noteUnrecorded(partner.id)
    }
    if (isUnrecorded) note(base)
    return {
      side,
      stage,
      revision: base?.setting.revision ?? 0,
      known,
      isCurrent: () => reader.state().era === era && (isRead() || (isServedByV2(stage) && wasAsked())),
      isStoreAnswering: () => isWithin(reader.state().lastAnswered, ANSWERED_MS),
      // Its client may come again from then on.
      leave: isWrite
        ? underWay.add(partner.id, { request, side }, () => isUnrecorded && note(baseOf(partner)))
        : () => undefined,
    }
  }
  const knownOf = (partner: string, base: Base | undefined): KnownWrite => {
    if (base === undefined || !isClean(reader.state().known, partner, base.setting.revision)) return 'keys'
    const { stage } = base.setting
    // A step that is acknowledged may be committed long before that is read.
    if (stage === 'legacy') return base.pending === undefined ? 'nothing' : 'identity'
    return stage === 'shadow' ? 'identity' : 'keys'
  }

  const attemptWrite = (partner: StagedPartner, request: StagedRequest, last: boolean): StageEntry | Wait => {
    const { id, fileStage } = partner
    const base = baseOf(partner)
    const setting = settingOf(partner, base)
    if (setting === undefined) return 'stale'
    const wait = waitFor(setting.stage, base, last)
    if (wait !== undefined) return wait
    if (setting !== base?.setting) reader.noteOverride(partner, base?.setting)
    const side = sideOf(setting, id, request)
    if (side === undefined) return 'stale'
    if (base?.pending !== undefined && sideOf(lowered(base.pending, fileStage), id, request) !== side)
      return 'changing'
    return letIn(partner, request, { side, stage: setting.stage, base })
  }
  const enterRead = (partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
    const base = baseOf(partner)
    // Paths of V3 go to V3 at every stage.
    const anyStage =
      request.kind === 'v3Path' ? { ...partner.fileStage, stage: 'complete' as const } : undefined
    const setting = settingOf(partner, base) ?? anyStage
    const side = setting && sideOf(setting, partner.id, request)
    if (setting !== undefined && side !== undefined)
      return letIn(partner, request, { side, stage: setting.stage, base })
    metrics.stageRefused({ partner: partner.id, reason: 'stale' })
    return Promise.reject(unknownStage('stale'))
  }

  return {
    /** As `LiveStages`. */
    enter: (given: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
      const partner = overridden(reader.state().known, given)
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
      const { known } = reader.state()
      return [...options.partners()].map((given) => {
        const partner = overridden(known, given)
        const { id } = partner
        const stored = known.view?.partners.get(id)
        const own = stored?.setting ?? ofFile(partner, known.view)
        const setting = lowered(own, partner.fileStage)
        const { stage, revision } = setting
        const source: StageSource = known.view?.asked === undefined ? 'kept' : 'store'
        return {
          partner: id,
          stage,
          percent: shareOf(setting),
          revision,
          source: stage !== own.stage ? 'override' : stored === undefined ? 'file' : source,
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
