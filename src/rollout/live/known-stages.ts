import { createHash } from 'node:crypto'

import type { WallClock } from '../../clock.ts'
import type { StagedPartner } from '../decide.ts'
import { isServedByV2, isSetting, type StageSetting, toSetting } from '../stage.ts'
import type { KnownTrail } from '../store/audit-trail.ts'
import type { PartnerRollout } from '../store/stage-rows.ts'
import type { RolloutSnapshot } from '../store/read-snapshot.ts'

/** A moment by both clocks. */
export interface ClockReading {
  readonly monotonicMs: number
  readonly wallMs: number
}

export function readClocks(clock: WallClock): ClockReading {
  return { monotonicMs: clock.nowMs(), wallMs: clock.wallMs() }
}

/**
 * The time between two moments by the clock that says more: the monotonic clock stands while a machine is suspended, the wall clock can be
 * set. One that was set back counts as well, since it may hide a pause.
 */
export function gapMs(from: ClockReading, to: ClockReading): number {
  return Math.max(to.monotonicMs - from.monotonicMs, Math.abs(to.wallMs - from.wallMs))
}

/** A setting with the revision of the store; 0: the setting with which the partner began. */
export interface RevisedSetting extends StageSetting {
  readonly revision: number
}

/** What an instance knows of a partner of the store. */
export interface PartnerView {
  /** `undefined` until the first change is committed: the setting with which the partner began counts. */
  readonly setting: RevisedSetting | undefined
  /** A change that waits for instances: undefined also for one that still needs an approval. */
  readonly pending: RevisedSetting | undefined
  /** False: the row of the store is damaged, and this is how it was read before. */
  readonly sound: boolean
}

/** The stages as they were read last. */
export interface StageView {
  readonly partners: ReadonlyMap<string, PartnerView>
  /** Where partners first began by a file. */
  readonly begins: ReadonlyMap<string, StageSetting>
  /** Partners whose stage was never read: their row is damaged. */
  readonly damaged: ReadonlySet<string>
  /** How far the audit trail had come when it was last well; undefined: that was not read yet. */
  readonly trail: KnownTrail | undefined
  /** False: it is damaged now, and a partner without a stage of its own has none. */
  readonly trailIsSound: boolean
  /** When the store was asked; undefined: this was kept by an earlier process. */
  readonly asked: ClockReading | undefined
  /** The lease under which it was read, and that the store counted with; undefined: none. */
  readonly instance: number | undefined
}

/**
 * How far a partner is on its way to be clean: V2 serves all its units, no instance has a write of V3 under way from before and no batch
 * that V3 has answered may come again (`drained`), and none of its records of V3 is unsettled. Then nothing can be overtaken or doubled by
 * what V2 serves. A partner stays clean until V3 serves it again.
 */
interface Progress {
  readonly revision: number
  readonly state: 'left' | 'drained' | 'clean'
  /** Clean at the revision before, so that V3 has answered nothing that may come again. */
  readonly isQuiet: boolean
}

/** What an instance knows of the stages at one moment; a later moment is another value. */
export interface KnownStages {
  /** Undefined: neither read nor kept. */
  readonly view: StageView | undefined
  readonly progress: ReadonlyMap<string, Progress>
}

export const nothingKnown: KnownStages = { view: undefined, progress: new Map() }

/** An answer of the store, and what belongs to it. */
interface StagesRead {
  readonly snapshot: RolloutSnapshot
  /** When it was asked for, and the lease that was held then. */
  readonly asked: ClockReading
  readonly lease: number | undefined
  /** Those of the configuration. */
  readonly partners: Iterable<StagedPartner>
  readonly resendWindowMs: number
}

/** What is known after the store was read, by a question that was asked after all that came before; pure. */
export function afterRead(known: KnownStages, read: StagesRead): KnownStages {
  const view = toView(read, known.view)
  const settings = settingsOf(view, read.partners)
  return { view, progress: nextProgress(known.progress, settings, read) }
}

function toView({ snapshot, asked, lease }: StagesRead, before: StageView | undefined): StageView {
  const partners = new Map(
    [...snapshot.partners].map(([partner, rollout]) => [partner, toPartnerView(rollout)]),
  )
  const damaged = new Set<string>()
  for (const partner of snapshot.damaged) {
    const known = before?.partners.get(partner)
    if (known === undefined) damaged.add(partner)
    else partners.set(partner, { ...known, sound: false })
  }
  return {
    partners,
    begins: snapshot.begins,
    damaged,
    trail: snapshot.trail ?? before?.trail,
    trailIsSound: snapshot.trail !== undefined,
    asked,
    // An instance that the store does not count with is not waited for: it knows nothing of what comes next.
    instance: lease !== undefined && snapshot.liveInstances.includes(lease) ? lease : undefined,
  }
}

function toPartnerView({ state, pending }: PartnerRollout): PartnerView {
  const revised = (one: RevisedSetting | undefined): RevisedSetting | undefined =>
    one && { ...toSetting(one), revision: one.revision }
  return {
    setting: revised(state),
    pending: revised(pending?.needsApproval ? undefined : pending),
    sound: true,
  }
}

/** Returns the setting with which a partner began, for a partner that the store has no change of. */
export function beginOf({ id, fileStage }: StagedPartner, view: StageView | undefined): RevisedSetting {
  return { ...toSetting(view?.begins.get(id) ?? fileStage), revision: 0 }
}

/** All partners that this instance may be asked about, also those that its file does not have: others wait for its acknowledgement. */
export function settingsOf(
  view: StageView,
  listed: Iterable<StagedPartner>,
): ReadonlyMap<string, RevisedSetting> {
  const settings = new Map<string, RevisedSetting>()
  for (const partner of listed) settings.set(partner.id, beginOf(partner, view))
  for (const [partner, { setting, pending }] of view.partners) {
    if (setting !== undefined) settings.set(partner, setting)
    // Its first change, and the file of this instance does not have it: no write of it is let in here.
    else if (pending !== undefined && !settings.has(partner))
      settings.set(partner, { ...pending, revision: 0 })
  }
  return settings
}

/** The partners whose records of V3 have to be settled yet, as far as is known. */
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
    // With a gap between the revisions, a step to V3 and back may have come between two reads.
    const isQuiet = known?.state === 'clean' && revision === known.revision + 1
    const own: Progress = known?.revision === revision ? known : { revision, state: 'left', isQuiet }
    const isOver = (): boolean => isDrained(partner, revision) && (own.isQuiet || !mayComeAgain(partner))
    // The records are asked for by a later read: those of the last writes may be missing in one that was read at the same time.
    if (own.state === 'left') progress.set(partner, isOver() ? { ...own, state: 'drained' } : own)
    else if (snapshot.settled.has(partner)) progress.set(partner, { ...own, state: 'clean' })
    else progress.set(partner, own)
  }
  return progress
}

/** Returns whether every live instance serves a partner by a revision and has no write of V3 under way. */
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

/** True for a partner that is clean at this revision. */
export function isClean({ progress }: KnownStages, partner: string, revision: number): boolean {
  const known = progress.get(partner)
  return known?.state === 'clean' && known.revision === revision
}

/** Where what is known outlives the process. */
export interface KeptStages {
  /** The text that was saved last; undefined: none. Rejects where it cannot be read. */
  load(): Promise<string | undefined>
  /** Replaces it; durable as a whole or not at all. */
  save(text: string): Promise<void>
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** What is kept as plain JSON: neither when the store was asked, nor how far partners are that are not clean. */
const toKept = ({ view, progress }: KnownStages) => ({
  view: view && {
    partners: [...view.partners],
    begins: [...view.begins],
    damaged: [...view.damaged],
    trail: view.trail,
  },
  clean: [...progress].filter(([, { state }]) => state === 'clean'),
})

/** Writes what is known as text, with a checksum: for a start without the store. */
export function encodeKnown(known: KnownStages): string {
  const text = JSON.stringify(toKept(known))
  return `markbridge stages 3 ${digestOf(text)}\n${text}\n`
}

/** Reads such a text; undefined: it is not as it was written, or has a stage that this version does not know. */
export function parseKnown(kept: string): KnownStages | undefined {
  const [, digest, text = ''] = /^markbridge stages 3 ([0-9a-f]{64})\n(.*)\n$/.exec(kept) ?? []
  if (digest === undefined || digest !== digestOf(text)) return undefined
  // The checksum says that this program has written it.
  const { view, clean } = JSON.parse(text) as ReturnType<typeof toKept>
  const settings = (view?.partners ?? []).flatMap(([, { setting, pending }]) => [setting, pending])
  const begins = new Map(view?.begins)
  if (![...settings, ...begins.values()].every((one) => one === undefined || isSetting(one))) return undefined
  return {
    view: view && {
      partners: new Map(view.partners),
      begins,
      damaged: new Set(view.damaged),
      trail: view.trail,
      trailIsSound: true,
      asked: undefined,
      instance: undefined,
    },
    progress: new Map(clean.map(([partner, own]) => [partner, { ...own, isQuiet: true }])),
  }
}
