import { backOf, nextOf, type Stage } from '../../../src/rollout/index.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'
import type { Random } from '../../../src/sandbox/random.ts'

/** What an operator does at a stage: shares of steps forward and of ways back; the rest changes the share of `canary`, or nothing. */
const habits: Readonly<Record<Stage, { readonly forward: number; readonly back: number }>> = {
  legacy: { forward: 1, back: 0 },
  shadow: { forward: 0.85, back: 0.15 },
  canary: { forward: 0.3, back: 0.2 },
  v3: { forward: 0.2, back: 0.8 },
  complete: { forward: 0, back: 1 },
}
/** Of the ways back from where V3 serves all: those that lead one stage down only. */
const ONE_DOWN_SHARE = 0.4

/** All schools go from V2 to V3 and back again and again. */
export function swing(setting: StageSetting): { readonly to: StageSetting; readonly isBack: boolean } {
  if (setting.stage === 'legacy') return { to: { ...setting, stage: 'shadow' }, isBack: false }
  const isBack = setting.stage !== 'shadow'
  return { to: { ...setting, stage: isBack ? 'shadow' : 'canary', percent: 100 }, isBack }
}

/** Draws what an operator makes of a setting. */
export function drawChange(
  random: Random,
  setting: StageSetting,
  schools: readonly string[],
): { readonly to: StageSetting; readonly isBack: boolean } {
  const { stage } = setting
  const { forward, back } = habits[stage]
  const point = random.next()
  if (point < forward) {
    const next = nextOf(stage) ?? stage
    return {
      to: next === 'canary' ? drawShare(random, next, schools) : { ...setting, stage: next },
      isBack: false,
    }
  }
  if (point < forward + back) {
    if (stage === 'complete' && random.chance(ONE_DOWN_SHARE))
      return { to: { ...setting, stage: 'v3' }, isBack: false }
    if (stage === 'v3' && random.chance(ONE_DOWN_SHARE))
      return { to: drawShare(random, 'canary', schools), isBack: false }
    return { to: { ...setting, stage: backOf(stage) }, isBack: true }
  }
  return { to: drawShare(random, stage, schools), isBack: false }
}

/** Some of the schools by their share, and now and then one by its name. */
function drawShare(random: Random, stage: Stage, schools: readonly string[]): StageSetting {
  const named = (): string[] => (random.chance(0.3) ? [random.pick([schools[0] ?? '', ...schools])] : [])
  return { stage, percent: random.below(101), always: named(), never: named() }
}
