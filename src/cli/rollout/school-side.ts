import { AdapterError } from '../../errors.ts'
import { decideByRule, type SideRule } from '../../rollout/decide.ts'
import { parseUnits, type Side, unitRule } from '../../rollout/stage.ts'
import type { RolloutStore } from '../../rollout/store/rollout-store.ts'
import type { StageView } from './stage-view.ts'

interface SchoolSide {
  readonly school: string
  readonly serves: Side
  readonly rule: SideRule
  /** The answer in one sentence, for the command line and the console. */
  readonly text: string
}

/**
 * Returns the side that serves the V2 writes and reads of a school, by the rule that the instances apply. `store` is `undefined` without a
 * journal. Throws `ADP_USAGE` if `given` does not name exactly one school, or if the side cannot be known without a journal.
 */
export async function findSchoolSide(
  { partner, setting }: StageView,
  given: string,
  store: Pick<RolloutStore, 'unitSecret'> | undefined,
): Promise<SchoolSide> {
  const [school, ...others] = parseUnits(given) ?? []
  if (school === undefined || others.length > 0)
    throw new AdapterError(
      'ADP_USAGE',
      `The text does not name one school. Nothing was looked up. ${unitRule}`,
    )
  const secret = await store?.unitSecret()
  const [serves, rule] = decideByRule(setting, partner, { kind: 'batch', unit: school }, () => secret) ?? []
  if (serves === undefined || rule === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'There is no journal, so the side of a school at canary is not known. Nothing was looked up. Set journal.url.',
    )
  const { stage, percent } = setting
  const because = {
    stage: `it serves all schools at ${stage}`,
    never: 'the school is on the list of --never',
    always: 'the school is on the list of --always',
    percent: `the school is ${serves === 'v3' ? 'within' : 'outside'} the ${percent} % that V3 serves`,
  }[rule]
  return { school, serves, rule, text: `${serves.toUpperCase()} serves ${school}, because ${because}.` }
}
