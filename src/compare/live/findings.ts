import type { OwnRules } from '../diff/index.ts'
import type { Comparison, DifferenceKind, FieldDifference, FieldEquivalence } from '../verdict.ts'

/** What the comparison of one record has found so far; the same finding twice counts once. */
export class Findings {
  readonly differences: FieldDifference[] = []
  readonly equivalences: FieldEquivalence[] = []
  private readonly expired = new Set<string>()
  private readonly rules: OwnRules | undefined

  /** `rules`: the partner's own. */
  constructor(rules?: OwnRules) {
    this.rules = rules
  }

  differ(path: string, kind: DifferenceKind, v2Class: string, v3Class: string): void {
    const found = { path, kind, v2Class, v3Class }
    const rule = this.rules?.find({ ...found, v2: undefined, v3: undefined })
    if (rule?.expired === false) this.equal(rule.name, path)
    else this.add({ differences: [found], equivalences: [] })
    if (rule?.expired === true) this.expired.add(rule.name)
  }

  equal(rule: string, path: string): void {
    if (!this.equivalences.some((own) => own.rule === rule && own.path === path))
      this.equivalences.push({ rule, path })
  }

  add({ differences, equivalences, expiredRules = [] }: Omit<Comparison, 'verdict'>): void {
    for (const found of differences)
      if (!this.differences.some((own) => isSame(own, found))) this.differences.push(found)
    for (const name of expiredRules) this.expired.add(name)
    for (const { rule, path } of equivalences) this.equal(rule, path)
  }

  comparison(): Comparison {
    const { differences, equivalences, expired } = this
    const expiredRules = expired.size === 0 ? {} : { expiredRules: [...expired] }
    if (differences.length > 0) return { verdict: 'differs', differences, equivalences, ...expiredRules }
    return { verdict: equivalences.length > 0 ? 'equivalent' : 'same', differences, equivalences }
  }
}

const isSame = (one: FieldDifference, other: FieldDifference): boolean =>
  one.path === other.path &&
  one.kind === other.kind &&
  one.v2Class === other.v2Class &&
  one.v3Class === other.v3Class

/** A verdict without a field. */
export function plainly(verdict: Comparison['verdict']): Comparison {
  return { verdict, differences: [], equivalences: [] }
}

/** True where both sides show the same. */
export const isFound = ({ verdict }: Comparison): boolean => verdict === 'same' || verdict === 'equivalent'

/** Kind of a member that one side lacks. */
export const absence = (v2: unknown): DifferenceKind => (v2 === undefined ? 'extra' : 'missing')
