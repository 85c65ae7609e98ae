/**
 * Why a condition is not met. `blocked`: the step would fail. `fails`: an operator must act first. `inconclusive`: too few writes or
 * comparisons were seen. `not yet`: only time is missing.
 */
type Obstacle = 'blocked' | 'fails' | 'inconclusive' | 'not yet'

/**
 * A condition of a step. `obstacle` and `sentence` (for the operator) apply only if the condition is not met, which is when `isMissing` is
 * true.
 */
export type Condition = readonly [
  name: string,
  obstacle: Obstacle,
  isMissing: boolean,
  sentence: string,
  progress?: string | undefined,
]

export interface StepCondition {
  readonly name: string
  /** `waiting` if time or more traffic can meet the condition, and `fail` if an operator must act. */
  readonly state: 'pass' | 'fail' | 'waiting'
  /** How far the condition is met, such as `312 of 1,000`. */
  readonly progress: string | undefined
  /** The sentence for the operator, or `undefined` for a condition that is met. */
  readonly sentence: string | undefined
}

export interface JudgedConditions {
  /** `blocked` if the step would fail, `inconclusive` if too few writes or comparisons were seen, `not yet` if another condition is not met. */
  readonly verdict: 'ready' | 'blocked' | 'inconclusive' | 'not yet'
  /** One sentence for each unmet condition. Empty if the verdict is `ready`. */
  readonly missing: readonly string[]
  /** All conditions of the step, met or not. */
  readonly conditions: readonly StepCondition[]
}

export function judgeConditions(conditions: readonly Condition[]): JudgedConditions {
  const unmet = conditions.filter(([, , isMissing]) => isMissing)
  const has = (wanted: Obstacle): boolean => unmet.some(([, obstacle]) => obstacle === wanted)
  const gravest = (['blocked', 'inconclusive'] as const).find(has)
  return {
    verdict: gravest ?? (unmet.length === 0 ? 'ready' : 'not yet'),
    missing: unmet.map(([, , , sentence]) => sentence),
    conditions: conditions.map(([name, obstacle, isMissing, sentence, progress]) => {
      const needsAct = obstacle === 'blocked' || obstacle === 'fails'
      const state = isMissing ? (needsAct ? 'fail' : 'waiting') : 'pass'
      return { name, state, progress, sentence: isMissing ? sentence : undefined }
    }),
  }
}

export const formatNumber = (value: number): string => value.toLocaleString('en')

export const formatProgress = (have: number, needed: number): string =>
  `${formatNumber(have)} of ${formatNumber(needed)}`
