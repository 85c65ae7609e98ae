import type { LogEvidence } from './change-evidence.ts'
import type { GuardKindName } from './guard-kinds.ts'

/** Evidence of one test, with what it would be without each unit that had bad outcomes. */
export interface TestEvidence {
  /** From 1: how often the test began anew after an alarm. */
  readonly episode: number
  /** Windows that said anything. */
  readonly windows: number
  readonly logs: LogEvidence
  readonly without: ReadonlyMap<string, LogEvidence>
}

/** The evidence that one unit is worse than all others. */
export interface UnitEvidence {
  /** Its place in the order in which units were found to have bad outcomes, from 1: later ones need more evidence. */
  readonly rank: number
  readonly logs: LogEvidence
}

/** Evidence about single units. */
export interface UnitsEvidence {
  readonly episode: number
  readonly windows: number
  /** The ranks that were given. */
  readonly ranks: number
  readonly units: ReadonlyMap<string, UnitEvidence>
}

/** Trials since the stage or its share changed. */
export interface TrialCounts {
  readonly v3: number
  readonly v3Bad: number
  readonly v2: number
  readonly v2Bad: number
}

/** What is known about one kind of bad outcome. */
export interface KindEvidence {
  /** V3 against V2 in the same windows. */
  readonly control: TestEvidence
  /** V3 against the tolerated share, in windows without V2. */
  readonly alone: TestEvidence
  /** Each unit on V3 against all others in the same windows. */
  readonly units: UnitsEvidence
  /** That V2 is worse than V3 just now: a running sum that never falls below 0. */
  readonly reverse: number
  readonly counted: TrialCounts
}

/** What guards can do, the weightier the later. `hold`: no step forward is advised. */
export const guardActions = ['notify', 'hold', 'back'] as const
export type GuardAction = (typeof guardActions)[number]

/** The tests of each kind. */
export const guardTests = ['control', 'alone', 'units'] as const
export type GuardTest = (typeof guardTests)[number]

/** An action of the guards, and what led to it. */
export interface GuardAct {
  readonly action: GuardAction
  readonly atMs: number
  readonly kind: GuardKindName
  readonly test: GuardTest
  /** The unit that it was about. */
  readonly unit?: string | undefined
}

/** All evidence about one partner, over all instances; it outlives restarts. */
export interface Evidence {
  /** The revision of the stage that `counted` belongs to. */
  readonly revision: number
  /** The end of the latest window with a trial on V2, or that of the first window. */
  readonly controlSeenMs: number | undefined
  readonly kinds: ReadonlyMap<GuardKindName, KindEvidence>
  readonly lastAct: GuardAct | undefined
}

/** Evidence before the first window. */
export const noEvidence: Evidence = {
  revision: 0,
  controlSeenMs: undefined,
  kinds: new Map(),
  lastAct: undefined,
}

const noTest: TestEvidence = { episode: 1, windows: 0, logs: [], without: new Map() }
const noTrials: TrialCounts = { v3: 0, v3Bad: 0, v2: 0, v2Bad: 0 }
const noKindEvidence: KindEvidence = {
  control: noTest,
  alone: noTest,
  units: { episode: 1, windows: 0, ranks: 0, units: new Map() },
  reverse: 0,
  counted: noTrials,
}

/** What is known about one kind. */
export function evidenceOf({ kinds }: Pick<Evidence, 'kinds'>, kind: GuardKindName): KindEvidence {
  return kinds.get(kind) ?? noKindEvidence
}

/** The evidence with the trials counted anew where the stage was changed since. What speaks for or against V3 stays. */
export function atRevision(evidence: Evidence, revision: number): Evidence {
  if (revision <= evidence.revision) return evidence
  const kinds = [...evidence.kinds].map(([kind, known]) => [kind, { ...known, counted: noTrials }] as const)
  return { ...evidence, revision, kinds: new Map(kinds) }
}

/**
 * The evidence after an action: the test that led to it begins anew, and each further episode of a test has a smaller part of alpha. After
 * `back` all tests do, since another V3 comes forward next time; an empty start without an alarm is on the safe side.
 */
export function afterAct(evidence: Evidence, act: GuardAct): Evidence {
  const kinds = [...evidence.kinds].map(([kind, known]) => {
    const { control, alone, units } = known
    const led = (test: GuardTest): 0 | 1 => (kind === act.kind && test === act.test ? 1 : 0)
    const anew = (test: GuardTest): boolean => act.action === 'back' || led(test) === 1
    const begun = {
      ...known,
      ...(anew('control') && { control: begunAnew(control, led('control')) }),
      ...(anew('alone') && { alone: begunAnew(alone, led('alone')) }),
      ...(anew('units') && {
        units: {
          ...units,
          episode: units.episode + led('units'),
          units: new Map([...units.units].filter(([unit]) => act.action !== 'back' && unit !== act.unit)),
        },
      }),
    }
    return [kind, begun] as const
  })
  return { ...evidence, kinds: new Map(kinds), lastAct: act }
}

function begunAnew(test: TestEvidence, episodes: 0 | 1): TestEvidence {
  return { ...noTest, windows: test.windows, episode: test.episode + episodes }
}
