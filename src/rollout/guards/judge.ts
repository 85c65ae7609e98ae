import { logPrior, totalOf } from './change-evidence.ts'
import {
  type Evidence,
  evidenceOf,
  type GuardAct,
  type GuardAction,
  guardActions,
  type GuardTest,
  type TestEvidence,
  type TrialCounts,
  type UnitsEvidence,
} from './evidence.ts'
import { type GuardKindName, guardKindNames, guardKinds } from './guard-kinds.ts'

export interface GuardSettings {
  /** The weightiest action that is taken by itself. */
  readonly action: GuardAction
  /** After an action, time in which none of the same or less weight follows and no step forward is advised. */
  readonly coolDownMs: number
}

/** The probability that the guards of a partner ever raise a false alarm. */
export const ALPHA = 0.0001

/** Why an alarm does not lead to `back`. */
export type HeldBecause = 'noControl' | 'singleUnit' | 'v2Worse'

/** The figures behind a verdict. */
export interface GuardFigures extends TrialCounts {
  /** Powers of ten that the evidence has of the `needed`. */
  readonly evidence: number
  readonly needed: number
}

/** What the guards say about a partner. */
export type GuardVerdict =
  | {
      readonly verdict: 'ok' | 'inconclusive'
      readonly figures: Readonly<Record<GuardKindName, TrialCounts>>
    }
  | {
      readonly verdict: 'alarm'
      readonly kind: GuardKindName
      readonly test: GuardTest
      /** The unit that is worse than all others. */
      readonly unit: string | undefined
      /** Undefined: the last action was so short a time ago that none follows. */
      readonly action: GuardAction | undefined
      readonly heldBecause: HeldBecause | undefined
      readonly figures: GuardFigures
    }

/** The parts of a kind's alpha. */
const TEST_SHARES: Readonly<Record<GuardTest, number>> = { control: 0.6, alone: 0.2, units: 0.2 }
/** Those of a kind that is known of V3 alone. */
const ONE_SIDED_SHARES: Readonly<Record<GuardTest, number>> = { control: 0, alone: 0.8, units: 0.2 }
/** Trials of each side below which the lack of an alarm says nothing. */
const MIN_TRIALS = 200
/** The likelihood ratio from which V2 counts as worse just now. */
const REVERSE_NEEDED = Math.log(20)

interface Alarm {
  readonly kind: GuardKindName
  readonly test: GuardTest
  readonly unit: string | undefined
  readonly evidence: number
  readonly needed: number
}

/** Judges the evidence about a partner; pure. */
export function judge(evidence: Evidence, settings: GuardSettings, nowMs: number): GuardVerdict {
  const alarm = findAlarm(evidence)
  if (alarm === undefined) return quiet(evidence)
  const { kind, test, unit } = alarm
  const heldBecause = reasonToHold(evidence, test)
  const action = lighter(settings.action, heldBecause === undefined ? 'back' : 'hold')
  const figures = {
    ...evidenceOf(evidence, kind).counted,
    evidence: toPowersOfTen(alarm.evidence),
    needed: toPowersOfTen(alarm.needed),
  }
  const allowed = isCooling(evidence.lastAct, action, settings, nowMs) ? undefined : action
  return { verdict: 'alarm', kind, test, unit, action: allowed, heldBecause, figures }
}

/** Whether an action of this weight follows too soon after the last one. */
export function isCooling(
  lastAct: GuardAct | undefined,
  action: GuardAction,
  { coolDownMs }: Pick<GuardSettings, 'coolDownMs'>,
  nowMs: number,
): boolean {
  if (lastAct === undefined || nowMs >= lastAct.atMs + coolDownMs) return false
  return guardActions.indexOf(action) <= guardActions.indexOf(lastAct.action)
}

/** Until when the last action speaks against a step forward; undefined: it does not any longer, or none was taken. */
export function coolDownOf(
  { lastAct }: Pick<Evidence, 'lastAct'>,
  { coolDownMs }: Pick<GuardSettings, 'coolDownMs'>,
  nowMs: number,
): (GuardAct & { readonly untilMs: number }) | undefined {
  if (lastAct === undefined || nowMs >= lastAct.atMs + coolDownMs) return undefined
  return { ...lastAct, untilMs: lastAct.atMs + coolDownMs }
}

function quiet(evidence: Evidence): GuardVerdict {
  const counts = (kind: GuardKindName): TrialCounts => evidenceOf(evidence, kind).counted
  const { v2, v3 } = counts('unknown')
  return {
    verdict: v2 < MIN_TRIALS || v3 < MIN_TRIALS ? 'inconclusive' : 'ok',
    figures: {
      unknown: counts('unknown'),
      serverError: counts('serverError'),
      refused: counts('refused'),
      slow: counts('slow'),
      mismatch: counts('mismatch'),
    },
  }
}

function reasonToHold(evidence: Evidence, test: GuardTest): HeldBecause | undefined {
  if (test === 'units') return 'singleUnit'
  if (test === 'alone') return 'noControl'
  const v2IsWorse = guardKindNames.some((kind) => evidenceOf(evidence, kind).reverse >= REVERSE_NEEDED)
  return v2IsWorse ? 'v2Worse' : undefined
}

/** The first alarm: V3 as a whole before a single unit, since each unit of a V3 that fails is worse than those on V2. */
function findAlarm(evidence: Evidence): Alarm | undefined {
  const found = (test: GuardTest): Alarm | undefined => {
    for (const kind of guardKindNames) {
      const known = evidenceOf(evidence, kind)
      const { episode } = known[test]
      const { alphaShare, oneSided } = guardKinds[kind]
      const needed =
        -Math.log(ALPHA * alphaShare * (oneSided ? ONE_SIDED_SHARES : TEST_SHARES)[test]) +
        Math.log(episode * (episode + 1))
      const { unit, evidence: reached } =
        test === 'units' ? strongestUnit(known.units) : { unit: undefined, evidence: leastOf(known[test]) }
      if (reached >= needed) return { kind, test, unit, evidence: reached, needed }
    }
    return undefined
  }
  return found('control') ?? found('alone') ?? found('units')
}

/** The evidence that is left without the unit that contributed most: no single unit raises the alarm of its partner. */
function leastOf({ logs, without }: TestEvidence): number {
  return Math.min(totalOf(logs), ...[...without.values()].map(totalOf))
}

function strongestUnit({ units }: UnitsEvidence): {
  readonly unit: string | undefined
  readonly evidence: number
} {
  let [strongest, evidence]: [string | undefined, number] = [undefined, -Infinity]
  for (const [unit, { rank, logs }] of units) {
    const own = totalOf(logs) + logPrior(rank)
    if (own > evidence) [strongest, evidence] = [unit, own]
  }
  return { unit: strongest, evidence }
}

function lighter(one: GuardAction, other: GuardAction): GuardAction {
  return guardActions.indexOf(one) < guardActions.indexOf(other) ? one : other
}

function toPowersOfTen(log: number): number {
  return Math.round((log / Math.LN10) * 10) / 10
}
