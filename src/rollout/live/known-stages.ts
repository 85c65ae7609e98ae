import { createHash } from 'node:crypto'

import type { WallClock } from '../../clock.ts'
import type { StagedPartner } from '../decide.ts'
import { isServedByV2, isSetting, type StageSetting, toSetting } from '../stage.ts'
import type { Head } from '../store/audit-trail.ts'
import type { PartnerRollout } from '../store/stage-rows.ts'
import type { RolloutSnapshot } from '../store/read-snapshot.ts'

export interface ClockReading {
  readonly monotonicMs: number
  readonly wallMs: number
}

export function readClocks(clock: WallClock): ClockReading {
  return { monotonicMs: clock.nowMs(), wallMs: clock.wallMs() }
}

/**
 * Returns the time between two moments in milliseconds, by the clock that shows more. The monotonic clock stops while the machine is
 * suspended, and the wall clock can be set. Setting the wall clock back counts as well, because it may hide a pause.
 */
export function gapMs(from: ClockReading, to: ClockReading): number {
  return Math.max(to.monotonicMs - from.monotonicMs, Math.abs(to.wallMs - from.wallMs))
}

/** A setting with its revision, which is 0 for the setting with which the partner began. */
export interface RevisedSetting extends StageSetting {
  readonly revision: number
}

export interface PartnerView {
  /** The committed setting, or `undefined` until the first commit. Until then the setting with which the partner began counts. */
  readonly setting: RevisedSetting | undefined
  /** The change that waits for instances, or `undefined` if there is no such change or it still needs an approval. */
  readonly pending: RevisedSetting | undefined
}

export interface StageView {
  readonly partners: ReadonlyMap<string, PartnerView>
  /** The settings of the configuration file with which partners began. */
  readonly begins: ReadonlyMap<string, StageSetting>
  /** The last known entry of the audit trail. Does not change while the trail in the store lacks this entry. */
  readonly trail: Head | undefined
  /** False if the trail no longer contains the entry `trail`. */
  readonly isTrailContinued: boolean
  /** When the stages were read. `undefined` if the stages come from the file that an earlier process saved. */
  readonly asked: ClockReading | undefined
  /** The lease that this instance held at the read, or `undefined` if the instance held no lease or the store considered it dead. */
  readonly instance: number | undefined
}

/**
 * The progress of a partner towards `clean`. `left`: V2 serves all units of the partner. `drained`: also, no instance has an earlier V3
 * write in progress, and no client may resend a batch that V3 answered. `clean`: also, all V3 records of the partner are settled, so that
 * V2 can neither overtake nor duplicate a write of V3. A partner stays clean until V3 serves it again.
 */
interface Progress {
  readonly revision: number
  readonly state: 'left' | 'drained' | 'clean'
  /** True if the partner was clean at the previous revision. V3 then answered no batch that a client may resend. */
  readonly isQuiet: boolean
}

/** What an instance knows about the stages at one moment. The value is never changed in place. */
export interface KnownStages {
  /** `undefined` if the stages were neither read nor loaded. */
  readonly view: StageView | undefined
  readonly progress: ReadonlyMap<string, Progress>
}

export const nothingKnown: KnownStages = { view: undefined, progress: new Map() }

interface StagesRead {
  readonly snapshot: RolloutSnapshot
  readonly asked: ClockReading
  readonly lease: number | undefined
  readonly partners: Iterable<StagedPartner>
  readonly resendWindowMs: number
}

/** Returns the known stages after a read of the store. The read must have begun after the read of `known` had ended. */
export function afterRead(known: KnownStages, read: StagesRead): KnownStages {
  const view = toView(read, known.view)
  const settings = settingsOf(view, read.partners)
  return { view, progress: nextProgress(known.progress, settings, read) }
}

function toView({ snapshot, asked, lease }: StagesRead, before: StageView | undefined): StageView {
  return {
    partners: new Map([...snapshot.partners].map(([partner, rollout]) => [partner, toPartnerView(rollout)])),
    begins: snapshot.begins,
    trail: snapshot.trail ?? before?.trail,
    isTrailContinued: snapshot.trail !== undefined,
    asked,
    // Keeps the lease only if the store considers the instance live. A commit does not wait for a dead instance, which therefore cannot
    // rely on its reads.
    instance: lease !== undefined && snapshot.liveInstances.includes(lease) ? lease : undefined,
  }
}

function toPartnerView({ state, pending }: PartnerRollout): PartnerView {
  const revised = (one: RevisedSetting | undefined): RevisedSetting | undefined =>
    one && { ...toSetting(one), revision: one.revision }
  return {
    setting: revised(state),
    pending: revised(pending?.needsApproval ? undefined : pending),
  }
}

/** Returns the setting with which a partner began. Used for a partner without a committed stage. */
export function beginOf({ id, fileStage }: StagedPartner, view: StageView | undefined): RevisedSetting {
  return { ...toSetting(view?.begins.get(id) ?? fileStage), revision: 0 }
}

/** Returns the settings of all partners. Includes partners that only the store knows, because other instances wait for their acknowledgement. */
export function settingsOf(
  view: StageView,
  listed: Iterable<StagedPartner>,
): ReadonlyMap<string, RevisedSetting> {
  const settings = new Map<string, RevisedSetting>()
  for (const partner of listed) settings.set(partner.id, beginOf(partner, view))
  for (const [partner, { setting, pending }] of view.partners) {
    if (setting !== undefined) settings.set(partner, setting)
    // Includes a partner that the configuration file of this instance lacks and whose first change is pending, because the change waits for
    // this instance too.
    else if (pending !== undefined && !settings.has(partner))
      settings.set(partner, { ...pending, revision: 0 })
  }
  return settings
}

export const drainedPartners = ({ progress }: KnownStages): readonly string[] =>
  [...progress].flatMap(([partner, { state }]) => (state === 'drained' ? [partner] : []))

function nextProgress(
  before: KnownStages['progress'],
  settings: ReadonlyMap<string, RevisedSetting>,
  { snapshot, resendWindowMs }: StagesRead,
): KnownStages['progress'] {
  const isDrained = drainedIn(snapshot)
  const mayComeAgain = (partner: string): boolean => {
    const { state } = snapshot.partners.get(partner) ?? {}
    return state !== undefined && snapshot.nowMs - state.sinceMs < resendWindowMs
  }
  const progress = new Map<string, Progress>()
  for (const [partner, { stage, revision }] of settings) {
    if (!isServedByV2(stage)) continue
    const known = before.get(partner)
    // Requires consecutive revisions, because a gap may hide a step to V3 and back that happened between two reads.
    const isQuiet = known?.state === 'clean' && revision === known.revision + 1
    const own: Progress = known?.revision === revision ? known : { revision, state: 'left', isQuiet }
    const isOver = (): boolean => isDrained(partner, revision) && (own.isQuiet || !mayComeAgain(partner))
    // Checks the records only at a later read, because the read that first finds the partner drained may miss the records of the last
    // writes.
    if (own.state === 'left') progress.set(partner, isOver() ? { ...own, state: 'drained' } : own)
    else if (snapshot.settled.has(partner)) progress.set(partner, { ...own, state: 'clean' })
    else progress.set(partner, own)
  }
  return progress
}

/**
 * Returns a function that returns true if every live instance serves a partner at the given revision and has no V3 write of the partner
 * in progress.
 */
function drainedIn({
  acknowledgements,
  liveInstances,
}: RolloutSnapshot): (partner: string, revision: number) => boolean {
  const drained = new Set(
    acknowledgements
      .filter(({ writesV3 }) => writesV3 === 0)
      .map(({ instance, partner, revision }) => `${instance} ${revision} ${partner}`),
  )
  return (partner, revision) =>
    liveInstances.length > 0 &&
    liveInstances.every((instance) => drained.has(`${instance} ${revision} ${partner}`))
}

export function isClean({ progress }: KnownStages, partner: string, revision: number): boolean {
  const known = progress.get(partner)
  return known?.state === 'clean' && known.revision === revision
}

/** The file that keeps the known stages after the end of the process. */
export interface KeptStages {
  /** Returns the saved text, or `undefined` if nothing was saved. Rejects if the file cannot be read. */
  load(): Promise<string | undefined>
  /** Replaces the text durably, either completely or not at all. */
  save(text: string): Promise<void>
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Selects what is saved. Leaves out when the store was read, and the progress of partners that are not clean. */
const toKept = ({ view, progress }: KnownStages) => ({
  view: view && {
    partners: [...view.partners],
    begins: [...view.begins],
    trail: view.trail,
  },
  clean: [...progress].filter(([, { state }]) => state === 'clean'),
})

/** Formats the known stages as text with a checksum, for a start without the store. */
export function encodeKnown(known: KnownStages): string {
  const text = JSON.stringify(toKept(known))
  return `markbridge stages 4 ${digestOf(text)}\n${text}\n`
}

/** Parses a saved text. Returns `undefined` if the text was altered or has a stage that this version does not know. */
export function parseKnown(kept: string): KnownStages | undefined {
  const [, digest, text = ''] = /^markbridge stages 4 ([0-9a-f]{64})\n(.*)\n$/.exec(kept) ?? []
  if (digest === undefined || digest !== digestOf(text)) return undefined
  // Casts without a check of the form, because the checksum shows that this program wrote the text.
  const { view, clean } = JSON.parse(text) as ReturnType<typeof toKept>
  const settings = (view?.partners ?? []).flatMap(([, { setting, pending }]) => [setting, pending])
  const begins = new Map(view?.begins)
  if (![...settings, ...begins.values()].every((one) => one === undefined || isSetting(one))) return undefined
  return {
    view: view && {
      partners: new Map(view.partners),
      begins,
      trail: view.trail,
      isTrailContinued: true,
      asked: undefined,
      instance: undefined,
    },
    progress: new Map(clean.map(([partner, own]) => [partner, { ...own, isQuiet: true }])),
  }
}
