import { lowered } from '../lowered.ts'
import type { KnownWrite, StagedPartner, StagedRequest, StageEntry } from '../live-stages.ts'
import { isWriteKind, placeOf, type Side, type Stage, type StageSetting } from '../stage.ts'
import { type Attempt, createHeldWrites, unknownStage, type Wait } from './held-writes.ts'
import type { StoredStages, StoredStagesOptions } from './options.ts'
import { createSideOf } from './side-of.ts'
import { elapsedMs } from './sighting.ts'
import { createStageReader } from './stage-reader.ts'
import { createUnderWay } from './under-way.ts'
import { isServedByV2, type RevisedSetting } from './view.ts'

/** What decides a request, besides itself. */
interface Base {
  readonly setting: RevisedSetting
  readonly pending: StageSetting | undefined
  /** Read in time, under the lease that is held: no change can have been committed since without this instance. */
  readonly isCurrent: boolean
}

const nothing = (): void => undefined
/** The store is asked every half second: two answers of a slow one are not further apart. */
const ANSWERED_MS = 1_500

/** Creates the stages of one instance over the store that all share. */
export function createStoredStages(options: StoredStagesOptions): StoredStages {
  const { clock, events, instance, staleAfterMs } = options
  const sideOf = createSideOf(options.secret)
  const underWay = createUnderWay(sideOf, (partner) => reader.left(partner))
  const held = createHeldWrites({
    clock,
    max: options.maxHeld ?? 1_000,
    limitsMs: {
      changing: options.holdMs ?? 15_000,
      stale: options.staleWaitMs ?? 2_000,
      asking: options.patienceMs ?? 1_000,
    },
    events,
  })
  const reader = createStageReader(options, underWay, () => held.retry())

  /** True while no change can have been committed without this instance since the stages were read. */
  const isRead = (): boolean => {
    const { asked, instance: counted } = reader.view() ?? {}
    if (asked === undefined || counted === undefined) return false
    return counted === instance() && elapsedMs(clock, asked) < staleAfterMs
  }
  /** True where the store was asked lately, whether it answered or not: this process has not stood still since. */
  const wasAsked = (): boolean => {
    const asked = reader.lastAsked()
    return asked !== undefined && elapsedMs(clock, asked) < staleAfterMs
  }

  const baseOf = (partner: StagedPartner): Base | undefined => {
    const { id } = partner
    const view = reader.view()
    if (view === undefined || view.damaged.has(id)) return undefined
    const known = view.partners.get(id)
    // Where it begins is kept first: another instance may have another file.
    const isKnown = known?.setting !== undefined || view.begins.has(id)
    // Its stage may be gone with the trail: the one of the file does not count.
    if (known?.setting === undefined && !view.trailIsSound) return undefined
    const isCurrent = isKnown && (known?.sound ?? true) && isRead()
    return { setting: known?.setting ?? reader.ofFile(partner), pending: known?.pending, isCurrent }
  }

  /** Why a write of a stage has to wait for the store; undefined: it need not. */
  const waitFor = (stage: Stage, { isCurrent }: Pick<Base, 'isCurrent'>, last: boolean): Wait | undefined => {
    if (isCurrent) return undefined
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
    const era = reader.era()
    const known = side === 'v2' ? knownOf(partner.id, base) : 'nothing'
    // The partner may have left `legacy` since it was read: should it come again, V3 would not know it.
    if (side === 'v2' && known === 'nothing' && isWriteKind(request.kind) && base?.isCurrent !== true)
      reader.noteUnrecorded(partner.id)
    return {
      side,
      stage,
      revision: base?.setting.revision ?? 0,
      known,
      isCurrent: () => reader.era() === era && (isRead() || (isServedByV2(stage) && wasAsked())),
      isStoreAnswering: () => {
        const answered = reader.lastAnswered()
        return answered !== undefined && elapsedMs(clock, answered) < ANSWERED_MS
      },
      leave: isWriteKind(request.kind) ? underWay.add(partner, request, side) : nothing,
    }
  }
  const knownOf = (partner: string, base: Base | undefined): KnownWrite => {
    if (base === undefined || !reader.isClean(partner, base.setting.revision)) return 'keys'
    const { stage } = base.setting
    // A step that is acknowledged may be committed long before that is read.
    if (stage === 'legacy') return base.pending === undefined ? 'nothing' : 'identity'
    return stage === 'shadow' ? 'identity' : 'keys'
  }

  const attemptWrite = (partner: StagedPartner, request: StagedRequest, last: boolean): StageEntry | Wait => {
    const { id, fileStage } = partner
    const base = baseOf(partner)
    if (base === undefined) {
      const { override } = fileStage
      // Whatever the stage is, the override makes it one that V2 serves.
      if (override === undefined || placeOf(override) > placeOf('shadow')) return 'stale'
      const wait = waitFor(override, { isCurrent: false }, last)
      if (wait !== undefined) return wait
      reader.overrides.note(partner, undefined)
      return letIn(partner, request, { side: 'v2', stage: override, base })
    }
    const setting = lowered(base.setting, fileStage)
    const wait = waitFor(setting.stage, base, last)
    if (wait !== undefined) return wait
    if (setting !== base.setting) reader.overrides.note(partner, base.setting)
    const side = sideOf(setting, id, request)
    if (side === undefined) return 'stale'
    if (base.pending !== undefined && sideOf(lowered(base.pending, fileStage), id, request) !== side)
      return 'changing'
    return letIn(partner, request, { side, stage: setting.stage, base })
  }

  const enterRead = (partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
    const base = baseOf(partner)
    const { override } = partner.fileStage
    const lowest = override === undefined ? undefined : { ...partner.fileStage, stage: override }
    // Paths of V3 go to V3 at every stage.
    const setting =
      base === undefined
        ? (lowest ?? { ...partner.fileStage, stage: 'complete' as const })
        : lowered(base.setting, partner.fileStage)
    const isKnown = base !== undefined || request.kind === 'v3Path' || isServedByV2(setting.stage)
    const side = isKnown ? sideOf(setting, partner.id, request) : undefined
    if (side === undefined) {
      events.refused({ partner: partner.id, reason: 'stale' })
      return Promise.reject(unknownStage('stale'))
    }
    return letIn(partner, request, { side, stage: setting.stage, base })
  }

  return {
    enter: (given, request) => {
      const partner = reader.overrides.over(given)
      if (!isWriteKind(request.kind)) return enterRead(partner, request)
      const attempt: Attempt = (last) => attemptWrite(partner, request, last)
      const first = attempt(false)
      if (typeof first !== 'string') return first
      if (first !== 'changing') reader.hurry()
      return held.wait({ partner: partner.id, unit: request.unit }, attempt, first)
    },
    start: () => reader.start(),
    stop: async () => {
      held.stop()
      await reader.stop()
    },
    noteUnrecorded: (partner) => reader.noteUnrecorded(partner),
    isReady: () => reader.view() !== undefined,
    describe: () => {
      const view = reader.view()
      return [...options.partners()].map((given) => {
        const partner = reader.overrides.over(given)
        const { id, fileStage } = partner
        const known = view?.partners.get(id)
        const own = known?.setting ?? reader.ofFile(partner)
        const setting = lowered(own, fileStage)
        const source = view?.asked === undefined ? 'kept' : 'store'
        return {
          partner: id,
          stage: setting.stage,
          percent: setting.percent,
          revision: setting.revision,
          source: setting.stage !== own.stage ? 'override' : known === undefined ? 'file' : source,
          pendingRevision: known?.pending?.revision,
          clean: reader.isClean(id, own.revision),
          underWay: underWay.count(id),
          held: held.count(id),
        }
      })
    },
    viewAgeMs: () => {
      const asked = reader.view()?.asked
      return asked && elapsedMs(clock, asked)
    },
  }
}
