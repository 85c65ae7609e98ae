import type { FieldDifference } from '../verdict.ts'

/** The classes of a difference to which a rule applies, at least one; one `*` stands for any text: `length:*`, `* trimmed`. */
export interface RuleCondition {
  readonly v2Class?: string | undefined
  readonly v3Class?: string | undefined
}

/** A rule of a partner's own: which differences of a field are accepted, by whom, why and until when. */
export interface PartnerRule {
  readonly name: string
  readonly reason: string
  readonly owner: string
  /** `YYYY-MM-DD`, the last day on which it counts (UTC). */
  readonly expires: string
  /** As in `FieldDifference`. */
  readonly path: string
  readonly when: RuleCondition
}

/** A rule, and whether it had expired when the rules were made. */
export interface DatedRule extends PartnerRule {
  readonly expired: boolean
}

export interface OwnRules {
  readonly all: readonly DatedRule[]
  /** The first rule that applies, before one that has expired; undefined: none. */
  find(difference: FieldDifference): DatedRule | undefined
}

/** Prepares the rules of a partner for a run. `today` is `YYYY-MM-DD`: a rule that expired before it is found, and marked. */
export function createOwnRules(rules: readonly PartnerRule[], today: string): OwnRules {
  const all = rules.map((rule) => ({ ...rule, expired: rule.expires < today }))
  const byPath = Map.groupBy(
    all.toSorted((one, other) => Number(one.expired) - Number(other.expired)),
    ({ path }) => path,
  )
  return {
    all,
    find: (difference) => byPath.get(difference.path)?.find(({ when }) => holds(when, difference)),
  }
}

function holds(when: RuleCondition, { v2Class, v3Class }: FieldDifference): boolean {
  return isOfClass(when.v2Class, v2Class) && isOfClass(when.v3Class, v3Class)
}

function isOfClass(wanted: string | undefined, actual: string): boolean {
  if (wanted === undefined) return true
  const [before = '', after] = wanted.split('*')
  if (after === undefined) return actual === wanted
  return actual.length >= before.length + after.length && actual.startsWith(before) && actual.endsWith(after)
}
