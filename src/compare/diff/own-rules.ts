import type { DifferenceKind } from '../verdict.ts'
import { momentOf, nanosBetween } from './values.ts'

/** What a difference must be for a rule to apply: everything that is given must hold, and at least one thing is. */
export interface RuleCondition {
  readonly kind?: DifferenceKind | undefined
  /** A class, or the beginning of one and `*`: `length:*`. */
  readonly v2Class?: string | undefined
  readonly v3Class?: string | undefined
  /** The texts are equal without blanks at their ends, */
  readonly trimmed?: true | undefined
  /** in one case, */
  readonly ignoreCase?: true | undefined
  /** when that of V2 is cut to this many characters (UTF-16). Together, these three apply one after the other. */
  readonly cutTo?: number | undefined
  /** The points in time are at most so far apart. */
  readonly maxShiftSeconds?: number | undefined
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

/** A difference with the values behind it, which rules read and nothing keeps. */
export interface ValueDifference {
  readonly path: string
  readonly kind: DifferenceKind
  readonly v2Class: string
  readonly v3Class: string
  readonly v2: unknown
  readonly v3: unknown
}

/** A rule, and whether it had expired when the rules were made. */
export interface DatedRule extends PartnerRule {
  readonly expired: boolean
}

export interface OwnRules {
  readonly all: readonly DatedRule[]
  /** The first rule that applies, before one that has expired; undefined: none. */
  find(difference: ValueDifference): DatedRule | undefined
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

function holds(when: RuleCondition, { kind, v2Class, v3Class, v2, v3 }: ValueDifference): boolean {
  return (
    (when.kind === undefined || when.kind === kind) &&
    isOfClass(when.v2Class, v2Class) &&
    isOfClass(when.v3Class, v3Class) &&
    isSameText(when, v2, v3) &&
    isNear(when.maxShiftSeconds, v2, v3)
  )
}

function isOfClass(wanted: string | undefined, actual: string): boolean {
  if (wanted === undefined) return true
  return wanted.endsWith('*') ? actual.startsWith(wanted.slice(0, -1)) : actual === wanted
}

function isSameText({ trimmed, ignoreCase, cutTo }: RuleCondition, v2: unknown, v3: unknown): boolean {
  if (trimmed === undefined && ignoreCase === undefined && cutTo === undefined) return true
  if (typeof v2 !== 'string' || typeof v3 !== 'string') return false
  const prepare = (text: string): string => {
    const ended = trimmed ? text.trim() : text
    return ignoreCase ? ended.toLowerCase() : ended
  }
  // A cut may leave a blank at the end.
  const [whole, stored] = [prepare(v2), prepare(v3)]
  const cut = cutTo === undefined ? whole : whole.slice(0, cutTo)
  return (trimmed ? cut.trimEnd() : cut) === stored
}

function isNear(maxSeconds: number | undefined, v2: unknown, v3: unknown): boolean {
  if (maxSeconds === undefined) return true
  if (typeof v2 !== 'string' || typeof v3 !== 'string') return false
  const [from, to] = [momentOf(v2), momentOf(v3)]
  return from !== undefined && to !== undefined && Math.abs(nanosBetween(from, to)) <= maxSeconds * 1e9
}
