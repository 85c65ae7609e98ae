import type { Comparison, DifferenceKind, FieldDifference, FieldEquivalence } from '../verdict.ts'
import type { OwnRules } from './own-rules.ts'

/** A verdict without a field. */
export function plainly(verdict: Comparison['verdict']): Comparison {
  return { verdict, differences: [], equivalences: [] }
}

/** Different findings of one record; a service that sends more of them sends something else than records. */
const MAX_FINDINGS = 200

/** What the comparison of one record has found so far; the same finding twice counts once. */
export class Findings {
  private readonly differences = new Map<string, FieldDifference>()
  private readonly equivalences = new Map<string, FieldEquivalence>()
  private readonly expired = new Set<string>()
  private isUnknown = false
  private readonly rules: OwnRules | undefined

  /** `rules`: the partner's own. */
  constructor(rules?: OwnRules) {
    this.rules = rules
  }

  differ(path: string, kind: DifferenceKind, [v2Class, v3Class]: readonly [v2: string, v3: string]): void {
    const found = { path, kind, v2Class, v3Class }
    const rule = this.rules?.find(found)
    if (rule?.expired === false) {
      this.agree(rule.name, path)
      return
    }
    if (rule !== undefined) this.expired.add(rule.name)
    this.keep(found)
  }

  /** Both mean the same by a rule. */
  agree(rule: string, path: string): void {
    if (this.equivalences.size < MAX_FINDINGS) this.equivalences.set(`${rule} ${path}`, { rule, path })
  }

  /** The record cannot be compared. */
  giveUp(): void {
    this.isUnknown = true
  }

  /** Adds what another comparison of the record has found. */
  add({ verdict, differences, equivalences, expiredRules = [] }: Comparison): void {
    if (verdict === 'unknown') this.giveUp()
    for (const found of differences) this.keep(found)
    for (const name of expiredRules) this.expired.add(name)
    for (const { rule, path } of equivalences) this.agree(rule, path)
  }

  result(): Comparison {
    const { differences, equivalences, expired } = this
    if (this.isUnknown) return plainly('unknown')
    return {
      verdict: differences.size > 0 ? 'differs' : equivalences.size > 0 ? 'equivalent' : 'same',
      differences: [...differences.values()],
      equivalences: [...equivalences.values()],
      ...(expired.size > 0 && { expiredRules: [...expired] }),
    }
  }

  private keep(found: FieldDifference): void {
    const key = `${found.path}\n${found.kind}\n${found.v2Class}\n${found.v3Class}`
    if (this.differences.size < MAX_FINDINGS) this.differences.set(key, found)
  }
}
