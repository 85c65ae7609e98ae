import { createHash } from 'node:crypto'

import type { Clock } from '../../clock.ts'
import { createPeriodicTask } from '../../clock/periodic-task.ts'
import { AdapterError } from '../../errors.ts'
import type { Side, Stage } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { addWindow } from './add-window.ts'
import { afterAct, atRevision, type Evidence, type GuardAct, noEvidence } from './evidence.ts'
import { formatEvidence, parseEvidence } from './evidence-note.ts'
import type { WentBack } from './go-back.ts'
import { type GuardSettings, type GuardVerdict, isCooling, judge } from './judge.ts'
import { createTrialWindows, type Trial, type TrialWindow, type TrialWindows } from './trial-windows.ts'

/** A write that a guard may count. */
export interface GuardedWrite {
  readonly partner: string
  readonly unit: string
  readonly stage: Stage
  readonly revision: number
  readonly side: Side
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** About how many records it has, by the same rule on both sides. */
  readonly records: number
}

/** A request that V3 served and that was compared with V2. */
export interface GuardedComparison extends Pick<
  GuardedWrite,
  'partner' | 'unit' | 'stage' | 'revision' | 'records'
> {
  /** A record of it differs. */
  readonly mismatch: boolean
}

export type GuardAlarm = Extract<GuardVerdict, { verdict: 'alarm' }>

/** Watches writes while the adapter runs. */
export interface LiveGuards {
  /** A write begins; what is returned takes its end. Undefined: it does not count. */
  begin(write: GuardedWrite): Trial | undefined
  /** A comparison of what V3 served is over. Only V3 has such, so their alarm never leads to `back`. */
  compared(comparison: GuardedComparison): void
  start(): void
  /** Judges what is over, and ends. */
  stop(): Promise<void>
}

export interface LiveGuardsOptions {
  readonly store: Pick<RolloutStore, 'readEvidence' | 'updateEvidence'>
  readonly settings: GuardSettings
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  /** Takes the partner back at once, from the revision that the alarm is about and from no other. */
  readonly goBack: (partner: string, revision: number, alarm: GuardAlarm) => Promise<WentBack>
  /** Called once for each action, on one instance; the partner has gone back by then. */
  readonly onAct: (partner: string, act: GuardAct, alarm: GuardAlarm) => void | Promise<void>
  /** Called with the windows that are judged. */
  readonly onWindows: (partner: string, windows: readonly TrialWindow[]) => void
  /** Evidence could not be read or kept; reported once until it can again. */
  readonly onFailure: (partner: string, code: string) => void
}

/** Bounds of the windows; `maxTrialMs` is longer than any request is served. */
const windowOptions = { windowMs: 10_000, maxTrialMs: 180_000, maxUnits: 5_000 }
const EVERY_MS = 1_000
const STOP_MS = 1_000
const MAX_UNIT_LENGTH = 64

/** Guards without a store of evidence: they count nothing. */
export const noGuards: LiveGuards = {
  begin: () => undefined,
  compared: () => undefined,
  start: () => undefined,
  stop: () => Promise.resolve(),
}

/** The name under which the evidence about a partner is stored. */
export function evidenceName(partner: string): string {
  return `guards ${partner}`
}

/** Reads the stored evidence about a partner. Errors: `ADP_JOURNAL_DAMAGED`, those of the store. */
export async function readEvidence(
  store: Pick<RolloutStore, 'readEvidence'>,
  partner: string,
): Promise<Evidence> {
  return fromText(await store.readEvidence(evidenceName(partner)))
}

function fromText(text: string | undefined): Evidence {
  return text === undefined ? noEvidence : parseEvidence(text)
}

interface Watched {
  readonly windows: TrialWindows
  /** Comparisons end long after their writes, so they have windows of their own, by the time at which they end. */
  readonly comparisons: TrialWindows
  /** Of the latest write. */
  stage: Stage
  revision: number
  hasFailed: boolean
}

/** Creates the guards: each instance counts its own writes, and adds its windows to the evidence of all instances. */
export function createLiveGuards(options: LiveGuardsOptions): LiveGuards {
  const { store, settings, clock, nowMs } = options
  const watched = new Map<string, Watched>()
  const addWindows = async (
    partner: string,
    { stage, revision }: Watched,
    windows: readonly TrialWindow[],
  ): Promise<void> => {
    const text = await store.updateEvidence(evidenceName(partner), (before) => {
      const counted = atRevision(fromText(before), revision)
      return formatEvidence(
        windows.reduce((sum, window) => addWindow(sum, window, stage === 'canary'), counted),
      )
    })
    const verdict = judge(parseEvidence(text), settings, nowMs())
    if (verdict.verdict === 'alarm' && verdict.action !== undefined)
      await act(partner, revision, verdict, verdict.action)
  }
  const act = async (
    partner: string,
    revision: number,
    alarm: GuardAlarm,
    action: GuardAct['action'],
  ): Promise<void> => {
    const { kind, test, unit } = alarm
    const taken: GuardAct = { action, atMs: nowMs(), kind, test, unit }
    // Before it is noted: an instance that ends in between leaves an alarm that the next one sees.
    // An operator has decided since: the evidence stays, and writes of the new stage are judged with it.
    if (action === 'back' && (await options.goBack(partner, revision, alarm)) === 'changed') return
    const noted = { isFirst: false }
    await store.updateEvidence(evidenceName(partner), (text) => {
      const evidence = fromText(text)
      // Not judged again: windows of another instance may have been added since the alarm that was acted on.
      noted.isFirst = !isCooling(evidence.lastAct, action, settings, taken.atMs)
      return formatEvidence(noted.isFirst ? afterAct(evidence, taken) : evidence)
    })
    if (noted.isFirst) await options.onAct(partner, taken, alarm)
  }
  const judgeWindows = async (): Promise<void> => {
    for (const [partner, one] of watched) {
      const hasTrials = ({ trials }: TrialWindow): boolean => trials.length > 0
      const writes = one.windows.close(nowMs()).filter(hasTrials)
      const comparisons = one.comparisons.close(nowMs()).filter(hasTrials)
      if (writes.length + comparisons.length === 0) continue
      try {
        options.onWindows(partner, writes)
        await addWindows(partner, one, [...writes, ...comparisons])
        one.hasFailed = false
      } catch (cause) {
        // Not added again: a commit whose reply was lost would count twice.
        if (!one.hasFailed)
          options.onFailure(partner, cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL')
        one.hasFailed = true
      }
    }
  }
  const judging = createPeriodicTask({ clock, everyMs: EVERY_MS, stopMs: STOP_MS, act: judgeWindows })
  const watchedOf = ({ partner, stage, revision }: Pick<GuardedWrite, 'partner' | 'stage' | 'revision'>) => {
    const one = watched.get(partner) ?? {
      windows: createTrialWindows(windowOptions),
      comparisons: createTrialWindows(windowOptions),
      stage,
      revision,
      hasFailed: false,
    }
    watched.set(partner, one)
    return one
  }
  return {
    begin: ({ partner, unit, stage, revision, side, receivedMs, records }) => {
      if (!isWatched(stage)) return undefined
      const one = watchedOf({ partner, stage, revision })
      Object.assign(one, { stage, revision })
      return one.windows.begin({ unit: boundedUnit(unit), side, receivedMs, records })
    },
    compared: ({ partner, unit, stage, revision, records, mismatch }) => {
      if (!isWatched(stage)) return
      const one = watchedOf({ partner, stage, revision })
      // One that was served by an earlier stage says nothing of the present one.
      if (revision < one.revision) return
      Object.assign(one, { stage, revision })
      const start = { unit: boundedUnit(unit), side: 'v3', receivedMs: nowMs(), records } as const
      one.comparisons.begin(start)?.end({ bad: { mismatch } })
    },
    start: () => judging.start(),
    stop: () => judging.stop(),
  }
}

const isWatched = (stage: Stage): boolean => stage === 'canary' || stage === 'v3'

/** Names come from clients and may be long; the evidence has to stay small. */
function boundedUnit(unit: string): string {
  if (unit.length <= MAX_UNIT_LENGTH) return unit
  return `sha256 ${createHash('sha256').update(unit).digest('hex').slice(0, 32)}`
}
