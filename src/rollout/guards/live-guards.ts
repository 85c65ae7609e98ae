import { createHash } from 'node:crypto'

import type { Clock } from '../../clock.ts'
import { createPeriodicTask } from '../../clock/periodic-task.ts'
import { AdapterError } from '../../errors.ts'
import type { Side, Stage } from '../stage.ts'
import type { RolloutStore } from '../store/rollout-store.ts'
import { addWindow } from './add-window.ts'
import { afterAct, atRevision, type CountedSides, type Evidence, noEvidence } from './evidence.ts'
import { formatEvidence, parseEvidence } from './evidence-note.ts'
import type { WentBack } from './go-back.ts'
import { judge } from './judge.ts'
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

/** What guards do. */
export interface GuardSettings {
  /** What a guard does at an alarm. `hold`: no step forward without a word of an operator; `notify`: it only says so. */
  readonly action: 'back' | 'hold' | 'notify'
  /** After an action, time without a step forward, and in which a guard that left V3 serving counts nothing. */
  readonly coolDownMs: number
}

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
  /** Takes the partner back at once, from the revision that the alarm is about and from no other. */
  readonly goBack: (partner: string, revision: number, figures: CountedSides) => Promise<WentBack>
  /** Called once for each action, on one instance; the partner has gone back by then. */
  readonly onAct: (partner: string, figures: CountedSides) => void | Promise<void>
  /** Called with the windows that are judged. */
  readonly onWindows: (partner: string, windows: readonly TrialWindow[]) => void
  /** Evidence could not be read or kept; reported once until it can again. */
  readonly onFailure: (partner: string, code: string) => void
}

/** Bounds of the windows; `maxTrialMs` is longer than any request is served. */
const windowOptions = { windowMs: 10_000, maxTrialMs: 180_000, maxUnits: 5_000 }
const EVERY_MS = 1_000
const STOP_MS = 1_000

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

/** The writes of one stage and share of a partner. */
interface Watched {
  readonly revision: number
  readonly windows: TrialWindows
}

/** Creates the guards: each instance counts its own writes, and adds its windows to the evidence of all instances. */
export function createLiveGuards(options: LiveGuardsOptions): LiveGuards {
  const { store, clock, nowMs } = options
  const { action, coolDownMs } = options.settings
  const watched = new Map<string, Watched>()
  const failing = new Set<string>()
  const addWindows = async (
    partner: string,
    revision: number,
    windows: readonly TrialWindow[],
  ): Promise<void> => {
    const text = await store.updateEvidence(evidenceName(partner), (before) => {
      const evidence = atRevision(fromText(before), revision)
      const isCounted = ({ endMs }: TrialWindow): boolean =>
        endMs >= (evidence.actedMs ?? -Infinity) + coolDownMs
      return formatEvidence(windows.filter(isCounted).reduce(addWindow, evidence))
    })
    const evidence = parseEvidence(text)
    const verdict = judge(evidence)
    if (verdict.verdict === 'alarm') await act(partner, evidence, verdict.figures)
  }
  const act = async (
    partner: string,
    { revision, episode }: Evidence,
    figures: CountedSides,
  ): Promise<void> => {
    // Before it is noted: an instance that ends in between leaves an alarm that the next one sees.
    // An operator has decided since: writes of the new stage are judged anew.
    if (action === 'back' && (await options.goBack(partner, revision, figures)) === 'changed') return
    const noted = { isFirst: false }
    await store.updateEvidence(evidenceName(partner), (text) => {
      const evidence = fromText(text)
      noted.isFirst = evidence.revision === revision && evidence.episode === episode
      return formatEvidence(noted.isFirst ? afterAct(evidence, nowMs()) : evidence)
    })
    if (noted.isFirst) await options.onAct(partner, figures)
  }
  const judgeWindows = async (): Promise<void> => {
    for (const [partner, { revision, windows }] of watched) {
      const closed = windows.close(nowMs()).filter(({ trials }) => trials.length > 0)
      if (closed.length === 0) continue
      try {
        options.onWindows(partner, closed)
        await addWindows(partner, revision, closed)
        failing.delete(partner)
      } catch (cause) {
        // Not added again: a commit whose reply was lost would count twice.
        if (!failing.has(partner))
          options.onFailure(partner, cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL')
        failing.add(partner)
      }
    }
  }
  const judging = createPeriodicTask({ clock, everyMs: EVERY_MS, stopMs: STOP_MS, act: judgeWindows })
  return {
    begin: ({ partner, unit, stage, revision, side, receivedMs, records }) => {
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
    stop: () => judging.stop(),
  }
}

/** The evidence names no school, and stays small whatever clients call theirs. */
function nameOf(unit: string): string {
  return createHash('sha256').update(unit).digest('base64url').slice(0, 22)
}
