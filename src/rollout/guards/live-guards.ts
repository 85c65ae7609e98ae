import { createHash } from 'node:crypto'

import type { Clock } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import type { Side, Stage } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { addWindow } from './add-window.ts'
import { afterAct, atRevision, type Evidence, type GuardAct, noEvidence } from './evidence.ts'
import { formatEvidence, parseEvidence } from './evidence-note.ts'
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

export type GuardAlarm = Extract<GuardVerdict, { verdict: 'alarm' }>

/** Watches writes while the adapter runs. */
export interface LiveGuards {
  /** A write begins; what is returned takes its end. Undefined: it does not count. */
  begin(write: GuardedWrite): Trial | undefined
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
  /** Takes the partner back at once; does nothing where V3 does not serve it any longer. */
  readonly goBack: (partner: string, alarm: GuardAlarm) => Promise<unknown>
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
const MAX_UNIT_LENGTH = 64

/** Guards without a store of evidence: they count nothing. */
export const noGuards: LiveGuards = {
  begin: () => undefined,
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
      await act(partner, verdict, verdict.action)
  }
  const act = async (partner: string, alarm: GuardAlarm, action: GuardAct['action']): Promise<void> => {
    const { kind, test, unit } = alarm
    const taken: GuardAct = { action, atMs: nowMs(), kind, test, unit }
    // Before it is noted: an instance that ends in between leaves an alarm that the next one sees.
    if (action === 'back') await options.goBack(partner, alarm)
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
      const windows = one.windows.close(nowMs()).filter(({ trials }) => trials.length > 0)
      if (windows.length === 0) continue
      try {
        options.onWindows(partner, windows)
        await addWindows(partner, one, windows)
        one.hasFailed = false
      } catch (cause) {
        // Not added again: a commit whose reply was lost would count twice.
        if (!one.hasFailed)
          options.onFailure(partner, cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL')
        one.hasFailed = true
      }
    }
  }
  let cancel = (): void => undefined
  let running = Promise.resolve()
  const schedule = (): void => {
    cancel = clock.after(EVERY_MS, () => {
      running = judgeWindows().finally(schedule)
    })
  }
  return {
    begin: ({ partner, unit, stage, revision, side, receivedMs, records }) => {
      if (stage !== 'canary' && stage !== 'v3') return undefined
      const one = watched.get(partner) ?? {
        windows: createTrialWindows(windowOptions),
        stage,
        revision,
        hasFailed: false,
      }
      watched.set(partner, one)
      Object.assign(one, { stage, revision })
      return one.windows.begin({ unit: boundedUnit(unit), side, receivedMs, records })
    },
    start: schedule,
    stop: async () => {
      cancel()
      await running
      cancel()
      await judgeWindows()
    },
  }
}

/** Names come from clients and may be long; the evidence has to stay small. */
function boundedUnit(unit: string): string {
  if (unit.length <= MAX_UNIT_LENGTH) return unit
  return `sha256 ${createHash('sha256').update(unit).digest('hex').slice(0, 32)}`
}
