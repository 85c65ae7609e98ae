import type { OwnRules } from '../diff/index.ts'
import type { Comparison, DifferenceKind, FieldDifference, FieldEquivalence } from '../verdict.ts'

/** What the comparison of one record has found so far. */
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
    else this.differences.push(found)
    if (rule?.expired === true) this.expired.add(rule.name)
  }

  equal(rule: string, path: string): void {
    if (!this.equivalences.some((own) => own.rule === rule && own.path === path))
      this.equivalences.push({ rule, path })
  }

  add({ differences, equivalences, expiredRules = [] }: Omit<Comparison, 'verdict'>): void {
    this.differences.push(...differences)
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

/** A verdict without a field. */
export function plainly(verdict: Comparison['verdict']): Comparison {
  return { verdict, differences: [], equivalences: [] }
}

/** Kind of a member that one side lacks. */
export const absence = (v2: unknown): DifferenceKind => (v2 === undefined ? 'extra' : 'missing')
