import { actOnEach, type Duty } from '../../heartbeat.ts'
import type { Events } from '../../observability/events.ts'
import { backOf, orderOf, type Stage, toSetting } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import {
  addWindow,
  atRevision,
  badOf,
  describeAlarm,
  formatGuardState,
  judge,
  parseGuardState,
  type GuardState,
} from './sequential-test.ts'
import {
  type CountedTrial,
  createTrialWindows,
  type Trial,
  type TrialStart,
  type TrialWindows,
} from './trial-windows.ts'

export interface GuardedWrite extends TrialStart {
  readonly partner: string
  readonly stage: Stage
  readonly revision: number
}

export type LiveGuards = ReturnType<typeof createLiveGuards>

interface LiveGuardsOptions {
  readonly store: Pick<RolloutStore, 'snapshot' | 'apply' | 'updateText'>
  /** Returns the current time in milliseconds since the epoch. */
  readonly nowMs: () => number
  readonly actOf: (partner: string) => 'back' | 'warn'
  readonly events: Pick<Events, 'guardActed' | 'guardWarned'>
  readonly metrics: {
    guardCounted(event: Pick<CountedTrial, 'side' | 'outcome'> & { readonly partner: string }): void
  }
}

const EVERY_MS = 1_000

export const noGuards: LiveGuards = {
  begin: () => undefined,
  duties: [],
}

export function guardStateName(partner: string): string {
  return `guards ${partner}`
}

/** Reads the evidence of the guards for a partner. Throws `ADP_JOURNAL_DAMAGED` and the errors of the store. */
export async function readGuardState(
  store: Pick<RolloutStore, 'readText'>,
  partner: string,
): Promise<GuardState> {
  return parseGuardState(await store.readText(guardStateName(partner)))
}

/** Creates the guards. Each instance counts its own writes and adds its windows to the evidence of all instances. */
export function createLiveGuards(options: LiveGuardsOptions) {
  const { store, nowMs, events, metrics } = options
  const watched = new Map<string, { readonly revision: number; readonly windows: TrialWindows }>()
  const warned = new Map<string, number>()
  const addWindows = async (
    partner: string,
    revision: number,
    windows: readonly (readonly CountedTrial[])[],
  ): Promise<void> => {
    const text = await store.updateText(guardStateName(partner), (before) =>
      formatGuardState(windows.reduce(addWindow, atRevision(parseGuardState(before), revision))),
    )
    const state = judge(parseGuardState(text))
    if (state.kind !== 'alarm') return
    const { v3, v2 } = state.figures
    const alarm = { partner, revision, reason: describeAlarm(state.figures) }
    const finding = { partner, v3: v3.trials, v3Bad: badOf(v3), v2: v2.trials, v2Bad: badOf(v2) }
    if (options.actOf(partner) === 'warn') {
      if (warned.get(partner) !== revision) events.guardWarned(finding)
      warned.set(partner, revision)
    } else if (await goBack(store, alarm)) events.guardActed(finding)
  }
  /** Judges the windows that are over. Never retries an addition, because an addition whose response was lost would then count twice. */
  const judgeWindows = (): Promise<void> =>
    actOnEach(watched, async ([partner, { revision, windows }]) => {
      const closed = windows.close(nowMs()).filter((trials) => trials.length > 0)
      if (closed.length === 0) return
      for (const { side, outcome } of closed.flat()) metrics.guardCounted({ partner, side, outcome })
      await addWindows(partner, revision, closed)
    })
  const duties: readonly Duty[] = [{ name: 'guards', everyMs: EVERY_MS, atStop: true, act: judgeWindows }]
  return {
    /** Begins the trial of a write. Returns `undefined` if the write does not count as a trial. */
    begin: ({ partner, stage, revision, ...write }: GuardedWrite): Trial | undefined => {
      // Begins trials only at `canary`, because at other stages one side serves all units, and there is nothing to compare it with.
      if (stage !== 'canary') return undefined
      let one = watched.get(partner)
      if (one?.revision !== revision) {
        // Drops the old windows, because their writes were served at an earlier stage or percentage.
        one = { revision, windows: createTrialWindows() }
        watched.set(partner, one)
      }
      return one.windows.begin(write)
    },
    duties,
  }
}

export const GUARD_NAME = 'guard'

interface GuardAlarm {
  readonly partner: string
  /** The revision of the stage. 0 for the stage of the configuration file. */
  readonly revision: number
  readonly reason: string
}

/**
 * Takes a partner back from V3 as an operator would, by a compare-and-set on the revision of the alarm. Returns false if V3 no longer
 * serves the partner, or if an operator has changed the stage since the alarm.
 */
export async function goBack(
  store: Pick<RolloutStore, 'snapshot' | 'apply'>,
  { partner, revision, reason }: GuardAlarm,
): Promise<boolean> {
  const { partners, begins } = await store.snapshot()
  const from = partners.get(partner)?.state ?? begins.get(partner)
  if (from === undefined || orderOf(from.stage) < orderOf('canary')) return false
  const to = { ...toSetting(from), stage: backOf(from.stage) }
  const change = { partner, expectedRevision: revision, from, to, by: GUARD_NAME, reason }
  return (await store.apply(change, 'guard')).kind === 'applied'
}
