import {
  decide,
  type KnownWrite,
  type StagedPartner,
  type StagedRequest,
  type StageEntry,
} from '../decide.ts'
import { isServedByV2, isWriteKind, percentOnV3, type Side, type Stage, type StageSetting } from '../stage.ts'
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
  /** Returns the secret of the journal, or `undefined` until the journal can be opened. */
  readonly secret: () => Uint8Array | undefined
  readonly metrics: HeldMetrics
  /** The longest time that a change may take to drain, in milliseconds. */
  readonly drainMs: number
  /** Maximum number of writes that wait for their stage. Default 1,000. */
  readonly maxHeld?: number
}

type SideCounts = Readonly<Record<Side, number>>

export type StoredStages = ReturnType<typeof createStoredStages>

interface Basis {
  readonly setting: RevisedSetting
  readonly pending: StageSetting | undefined
  /**
   * True if the stage was read recently under the present lease. No change can then have been committed since the read without the
   * acknowledgement of this instance.
   */
  readonly isCurrent: boolean
}

/** The time in milliseconds that a write waits in addition to the drain time, because the reads of the store and the commit take time. */
const BEYOND_DRAIN_MS = 5_000
/** How long a write waits for the stage to be read, in milliseconds. */
const STALE_MS = 2_000
/**
 * A store that has responded within this time, in milliseconds, is working, even if it is slow. The store is queried every half second.
 */
const ANSWERED_MS = 1_500

export function createStoredStages(options: StoredStagesOptions) {
  const { clock, metrics, instance, staleAfterMs, secret, drainMs, maxHeld = 1_000 } = options
  const sideOf = (setting: StageSetting, partner: string, request: StagedRequest): Side | undefined =>
    decide(setting, partner, request, secret)
  const underWay = createUnderWay((partner) => reader.writeEnded(partner))
  const misplaced = (partner: string, settings: readonly StageSetting[]): SideCounts =>
    underWay.count(partner, ({ request, side }) =>
      settings.some((setting) => sideOf(setting, partner, request) !== side),
    )
  const limitsMs = { changing: drainMs + BEYOND_DRAIN_MS, stale: STALE_MS, asking: PATIENCE_MS }
  const held = createHeldWrites({ clock, max: maxHeld, limitsMs, metrics })
  const reader = createStageReader(options, misplaced, () => held.retry())

  const isWithin = (since: ClockReading | undefined, ms: number): boolean =>
    since !== undefined && gapMs(since, readClocks(clock)) < ms
  /** Returns true if no change can have been committed without the acknowledgement of this instance since the stages were read. */
  const isRead = (): boolean => {
    const { view } = reader.state().known
    if (view?.instance === undefined || view.instance !== instance()) return false
    return isWithin(view.asked, staleAfterMs)
  }
  /** Returns true if the store was queried recently, whether or not it responded, and the process was not paused since then. */
  const wasAsked = (): boolean => isWithin(reader.state().lastAsked, staleAfterMs)

  /** Returns the stage that decides about a request, or `undefined` if the stages were neither read nor loaded. */
  const findBasis = (partner: StagedPartner): Basis | undefined => {
    const { id } = partner
    const { view } = reader.state().known
    if (view === undefined) return undefined
    const known = view.partners.get(id)
    // A setting from the configuration file counts only once it is stored, because another instance may have another configuration file.
    const isKnown = known?.setting !== undefined || view.begins.has(id)
    const isCurrent = isKnown && isRead()
    return { setting: known?.setting ?? beginOf(partner, view), pending: known?.pending, isCurrent }
  }
  /**
   * Returns why a write has to wait for the store, or `undefined` if the write need not wait. At `shadow` V2 serves without the store for
   * the resend window only, because a step to `canary` waits only that long after this instance has lost its lease.
   */
  const waitFor = (stage: Stage, isCurrent: boolean, last: boolean): Wait | undefined => {
    if (isCurrent) return undefined
    if (!isServedByV2(stage)) return 'stale'
    if (stage === 'shadow' && reader.unreadMs() > options.resendWindowMs) return 'stale'
    // After a pause of the process, a write waits for one query of the store, because the stage may have changed. If the store cannot be
    // reached, V2 continues to serve.
    return last || wasAsked() ? undefined : 'asking'
  }

  const admit = (partner: StagedPartner, request: StagedRequest, side: Side, basis: Basis): StageEntry => {
    const { leaseEpoch } = reader.state()
    const { stage, revision } = basis.setting
    const isWrite = isWriteKind(request.kind)
    const known = side === 'v2' ? knownOf(partner.id, basis) : 'nothing'
    // True for a write that the journal does not contain. If the client resends the write after the partner has left `legacy`, Markbridge
    // cannot recognise the resend.
    const isUnrecorded = isWrite && side === 'v2' && known === 'nothing'
    const note = (now: Basis | undefined): void => {
      const isLegacyStill = now?.isCurrent === true && now.setting.revision === revision
      if (!isLegacyStill) reader.noteUnrecorded(partner.id)
    }
    if (isUnrecorded) note(basis)
    return {
      side,
      stage,
      revision,
      known,
      isCurrent: () =>
        reader.state().leaseEpoch === leaseEpoch && waitFor(stage, isRead(), false) === undefined,
      isStoreAnswering: () => isWithin(reader.state().lastAnswered, ANSWERED_MS),
      // Notes an unrecorded write again at the end of the request, because from then on the client may resend the write.
      release: isWrite
        ? underWay.add(partner.id, { request, side }, () => isUnrecorded && note(findBasis(partner)))
        : () => undefined,
    }
  }
  const knownOf = (partner: string, { setting: { stage, revision }, pending }: Basis): KnownWrite => {
    if (!isClean(reader.state().known, partner, revision)) return 'keys'
    // Requires the identity once a step is pending, because the step may be committed long before this instance reads the new stage.
    if (stage === 'legacy') return pending === undefined ? 'nothing' : 'identity'
    return stage === 'shadow' ? 'identity' : 'keys'
  }

  const attemptWrite = (partner: StagedPartner, request: StagedRequest, last: boolean): StageEntry | Wait => {
    const basis = findBasis(partner)
    if (basis === undefined) return 'stale'
    const wait = waitFor(basis.setting.stage, basis.isCurrent, last)
    if (wait !== undefined) return wait
    const side = sideOf(basis.setting, partner.id, request)
    if (side === undefined) return 'stale'
    if (basis.pending !== undefined && sideOf(basis.pending, partner.id, request) !== side) return 'changing'
    return admit(partner, request, side, basis)
  }
  const enterRead = (partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
    const basis = findBasis(partner) ?? (request.kind === 'v3Path' ? anyStageOf(partner) : undefined)
    const side = basis && sideOf(basis.setting, partner.id, request)
    if (basis !== undefined && side !== undefined) return admit(partner, request, side, basis)
    metrics.stageRefused({ partner: partner.id, reason: 'stale' })
    return Promise.reject(unknownStage('stale'))
  }

  return {
    enter: (partner: StagedPartner, request: StagedRequest): StageEntry | Promise<StageEntry> => {
      if (!isWriteKind(request.kind)) return enterRead(partner, request)
      const attempt: Attempt = (last) => attemptWrite(partner, request, last)
      const first = attempt(false)
      if (typeof first !== 'string') return first
      if (first !== 'changing') reader.pollNow()
      return held.wait({ partner: partner.id, unit: request.unit }, attempt, first)
    },
    /** Loads the saved stages and starts reading. Resolves once the store has responded or is late. */
    start: () => reader.start(),
    /** Refuses the waiting writes and stops reading. Must be called once no request is in progress. */
    stop: async (): Promise<void> => {
      held.stop()
      await reader.stop()
    },
    /** Records in the store, as soon as the store can be reached, that V2 received a write without the journal's knowledge. */
    noteUnrecorded: (partner: string): void => reader.noteUnrecorded(partner),
    /** Returns false as long as the stages were neither read nor loaded. */
    isReady: (): boolean => reader.state().known.view !== undefined,
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
          percent: percentOnV3(setting),
          source: stored === undefined ? ('file' as const) : source,
          underWay: underWay.count(id),
          held: held.count(id),
        }
      })
    },
    /** Returns the age of the stages in milliseconds, or `undefined` if this process never read them. */
    viewAgeMs: (): number | undefined => {
      const asked = reader.state().known.view?.asked
      return asked && gapMs(asked, readClocks(clock))
    },
  }
}

/** Returns a setting for requests for V3 paths, which go to V3 at every stage. */
const anyStageOf = ({ fileStage }: StagedPartner): Basis => ({
  setting: { ...fileStage, stage: 'complete', revision: 0 },
  pending: undefined,
  isCurrent: false,
})

interface WriteUnderWay {
  readonly request: StagedRequest
  readonly side: Side
}

/** Creates the count of admitted writes in progress. Calls `onLeft` when a write ends, after the `atEnd` of the write. */
function createUnderWay(onLeft: (partner: string) => void) {
  const writes = new Map<string, Set<WriteUnderWay>>()
  return {
    /** Counts a write until the returned function is called. Further calls of that function have no effect. */
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
