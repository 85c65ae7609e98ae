import { createHash } from 'node:crypto'

import { type Clock, createPeriodicTask } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import {
  backOf,
  beginSetting,
  placeOf,
  type Side,
  type Stage,
  type StageSetting,
  toSetting,
} from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import {
  addWindow,
  afterAct,
  atRevision,
  badOf,
  type CountedSides,
  describeAlarm,
  formatTest,
  judge,
  parseTest,
  type TestState,
} from './sequential-test.ts'
import {
  type CountedTrial,
  createTrialWindows,
  type Trial,
  type TrialWindow,
  type TrialWindows,
} from './trial-windows.ts'

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

/** What a guard does at an alarm. `hold`: no step forward without an operator's confirmation; `notify`: it only reports it. */
export type GuardAction = 'back' | 'hold' | 'notify'

export type LiveGuards = ReturnType<typeof createLiveGuards>

/** Receives what guards do. Values are ids of partners, words and counts. */
interface GuardEvents {
  /** Once for each action, on one instance; the partner has gone back by then. Counts of trials since V3 became worse. */
  guardActed(event: {
    readonly partner: string
    readonly action: GuardAction
    readonly v3: number
    readonly v3Bad: number
    readonly v2: number
    readonly v2Bad: number
  }): void
  /** A test could not be read or kept; reported once until it can again. */
  guardsFailed(event: { readonly partner: string; readonly code: string }): void
}

interface LiveGuardsOptions {
  readonly store: Pick<RolloutStore, 'snapshot' | 'apply' | 'note' | 'updateText'>
  readonly action: GuardAction
  /** After an action, time without a step forward, and in which a guard that left V3 serving counts nothing. */
  readonly coolDownMs: number
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  /** The stage of the file, for a partner that the store does not know. */
  readonly fileStageOf: (partner: string) => StageSetting | undefined
  readonly events: GuardEvents
  readonly metrics: {
    /** A trial that is judged. */
    guardCounted(event: Pick<CountedTrial, 'side' | 'outcome'> & { readonly partner: string }): void
  }
}

/** Bounds of the windows; `maxTrialMs` is longer than any request is served. */
const windowOptions = { windowMs: 10_000, maxTrialMs: 180_000, maxUnits: 5_000 }
const EVERY_MS = 1_000
const STOP_MS = 1_000

/** Guards without a store: they count nothing. */
export const noGuards: LiveGuards = {
  begin: () => undefined,
  start: () => undefined,
  stop: () => Promise.resolve(),
}

/** The name under which the test of a partner is stored. */
export function testName(partner: string): string {
  return `guards ${partner}`
}

/** Reads the stored test of a partner. Errors: `ADP_JOURNAL_DAMAGED`, those of the store. */
export async function readTest(store: Pick<RolloutStore, 'readText'>, partner: string): Promise<TestState> {
  return parseTest(await store.readText(testName(partner)))
}

/** The writes of one stage and share of a partner. */
interface Watched {
  readonly revision: number
  readonly windows: TrialWindows
}

/** Creates the guards: each instance counts its own writes, and adds its windows to the test of all instances. */
export function createLiveGuards(options: LiveGuardsOptions) {
  const { store, action, coolDownMs, clock, nowMs, events, metrics } = options
  const watched = new Map<string, Watched>()
  const failing = new Set<string>()
  const addWindows = async (
    partner: string,
    revision: number,
    windows: readonly TrialWindow[],
  ): Promise<void> => {
    const text = await store.updateText(testName(partner), (before) => {
      const test = atRevision(parseTest(before), revision)
      const isCounted = ({ endMs }: TrialWindow): boolean => endMs >= (test.actedMs ?? -Infinity) + coolDownMs
      return formatTest(windows.filter(isCounted).reduce(addWindow, test))
    })
    const test = parseTest(text)
    const state = judge(test)
    if (state.kind === 'alarm') await act(partner, test, state.figures)
  }
  const act = async (
    partner: string,
    { revision, episode }: TestState,
    figures: CountedSides,
  ): Promise<void> => {
    // Before it is noted: an instance that ends in between leaves an alarm that the next one sees.
    // An operator has decided since: writes of the new stage are judged anew.
    const alarm = {
      partner,
      revision,
      fileStage: options.fileStageOf(partner),
      reason: describeAlarm(figures),
    }
    if (action === 'back' && (await goBack(store, alarm)) === 'changed') return
    const noted = { isFirst: false }
    await store.updateText(testName(partner), (text) => {
      const test = parseTest(text)
      noted.isFirst = test.revision === revision && test.episode === episode
      return formatTest(noted.isFirst ? afterAct(test, nowMs()) : test)
    })
    if (!noted.isFirst) return
    const { v3, v2 } = figures
    events.guardActed({ partner, action, v3: v3.trials, v3Bad: badOf(v3), v2: v2.trials, v2Bad: badOf(v2) })
    if (action === 'hold') await store.note(partner, 'hold', GUARD_NAME, alarm.reason)
  }
  const judgeWindows = async (): Promise<void> => {
    for (const [partner, { revision, windows }] of watched) {
      const closed = windows.close(nowMs()).filter(({ trials }) => trials.length > 0)
      if (closed.length === 0) continue
      try {
        for (const { side, outcome } of closed.flatMap(({ trials }) => trials))
          metrics.guardCounted({ partner, side, outcome })
        await addWindows(partner, revision, closed)
        failing.delete(partner)
      } catch (cause) {
        // Not added again: a commit whose reply was lost would count twice.
        if (!failing.has(partner))
          events.guardsFailed({ partner, code: cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL' })
        failing.add(partner)
      }
    }
  }
  const judging = createPeriodicTask({ clock, everyMs: EVERY_MS, stopMs: STOP_MS, act: judgeWindows })
  return {
    /** A write begins; what is returned takes its end. Undefined: it does not count. */
    begin: ({
      partner,
      unit,
      stage,
      revision,
      side,
      receivedMs,
      records,
    }: GuardedWrite): Trial | undefined => {
      // At other stages one side serves alone, and there is nothing to compare it with.
      if (stage !== 'canary') return undefined
      let one = watched.get(partner)
      if (one?.revision !== revision) {
        // What is under way there was served by an earlier stage or share.
        one = { revision, windows: createTrialWindows(windowOptions) }
        watched.set(partner, one)
      }
      return one.windows.begin({ unit: nameOf(unit), side, receivedMs, records })
    },
    start: () => judging.start(),
    /** Judges what is over, and ends. */
    stop: () => judging.stop(),
  }
}

/** The stored test names no school, and stays small whatever clients call theirs. */
function nameOf(unit: string): string {
  return createHash('sha256').update(unit).digest('base64url').slice(0, 22)
}

/** The name under which guards act in the audit trail. */
export const GUARD_NAME = 'guard'

/** What a guard takes a partner back for. */
interface GuardAlarm {
  readonly partner: string
  /** The revision of the stage that the alarm is about; 0: that of the file. */
  readonly revision: number
  /** The stage of the file, for a partner that the store does not know. */
  readonly fileStage: StageSetting | undefined
  readonly reason: string
}

/**
 * `gone`: V3 does not serve the partner any longer, or the store does not know its stage; `changed`: V3 serves it by a later stage or share
 * than the alarm is about, which an operator has chosen since.
 */
export type WentBack = 'applied' | 'gone' | 'changed'

/** A change that came between the reading and the writing is read the second time. */
const ATTEMPTS = 2

/** Takes a partner back from V3, as an operator does, by a compare-and-set on the revision of the alarm. Errors: those of the store. */
export async function goBack(
  store: Pick<RolloutStore, 'snapshot' | 'apply'>,
  { partner, revision, fileStage, reason }: GuardAlarm,
): Promise<WentBack> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { partners, begins, damaged } = await store.snapshot()
    const known = partners.get(partner)?.state
    const from = known ?? (fileStage && beginSetting(fileStage, begins.get(partner)))
    if (damaged.has(partner) || from === undefined || placeOf(from.stage) < placeOf('canary')) return 'gone'
    if ((known?.revision ?? 0) !== revision) return 'changed'
    const to = { ...toSetting(from), stage: backOf(from.stage) }
    const change = { partner, expectedRevision: revision, from, to, by: GUARD_NAME, reason }
    if ((await store.apply(change, 'guard')).kind === 'applied') return 'applied'
  }
  return 'changed'
}
