import type { Comparison, DifferenceKind, FieldDifference, FieldEquivalence } from '../verdict.ts'

export function verdictOnly<Name extends string>(
  verdict: Name,
): Omit<Comparison, 'verdict'> & { readonly verdict: Name } {
  return { verdict, differences: [], equivalences: [] }
}

/** The maximum number of distinct findings per record. A reply that exceeds it does not contain attendance records. */
const MAX_FINDINGS = 200

export class Findings {
  private readonly differences = new Map<string, FieldDifference>()
  private readonly equivalences = new Map<string, FieldEquivalence>()
  private readonly expired = new Set<string>()
  private isUnknown = false
  private readonly rules: OwnRules | undefined

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
    this.insert(found)
  }

  agree(rule: string, path: string): void {
    if (this.equivalences.size < MAX_FINDINGS) this.equivalences.set(`${rule} ${path}`, { rule, path })
  }

  markUnknown(): void {
    this.isUnknown = true
  }

  add({ verdict, differences, equivalences, expiredRules = [] }: Comparison): void {
    if (verdict === 'unknown') this.markUnknown()
    for (const found of differences) this.insert(found)
    for (const name of expiredRules) this.expired.add(name)
    for (const { rule, path } of equivalences) this.agree(rule, path)
  }

  result(): Comparison {
    const { differences, equivalences, expired } = this
    if (this.isUnknown) return verdictOnly('unknown')
    return {
      verdict: differences.size > 0 ? 'differs' : equivalences.size > 0 ? 'equivalent' : 'same',
      differences: [...differences.values()],
      equivalences: [...equivalences.values()],
      ...(expired.size > 0 && { expiredRules: [...expired] }),
    }
  }

  private insert(found: FieldDifference): void {
    const key = `${found.path}\n${found.kind}\n${found.v2Class}\n${found.v3Class}`
    if (this.differences.size < MAX_FINDINGS) this.differences.set(key, found)
  }
}

/** The classes to which a rule applies. At least one of them is set. A `*` matches any text, as in `length:*` or `* trimmed`. */
export interface RuleCondition {
  readonly v2Class?: string | undefined
  readonly v3Class?: string | undefined
}

interface PartnerRule {
  readonly name: string
  readonly reason: string
  readonly owner: string
  /** The last day (UTC) on which the rule applies, as `YYYY-MM-DD`. */
  readonly expires: string
  readonly path: string
  readonly when: RuleCondition
}

export interface DatedRule extends PartnerRule {
  readonly expired: boolean
}

export interface OwnRules {
  readonly all: readonly DatedRule[]
  /** Returns the rule that applies to a difference, or `undefined` if no rule applies. Active rules take precedence over expired rules. */
  find(difference: FieldDifference): DatedRule | undefined
}

/** Prepares rules for lookup. A rule has expired if its last day is before `today` (`YYYY-MM-DD`). */
export function createOwnRules(rules: readonly PartnerRule[], today: string): OwnRules {
  const all = rules.map((rule) => ({ ...rule, expired: rule.expires < today }))
  const byPath = Map.groupBy(
    all.toSorted((one, other) => Number(one.expired) - Number(other.expired)),
    ({ path }) => path,
  )
  return {
    all,
    find: (difference) => byPath.get(difference.path)?.find(({ when }) => appliesTo(when, difference)),
  }
}

function appliesTo(when: RuleCondition, { v2Class, v3Class }: FieldDifference): boolean {
  return isOfClass(when.v2Class, v2Class) && isOfClass(when.v3Class, v3Class)
}

function isOfClass(wanted: string | undefined, actual: string): boolean {
  if (wanted === undefined) return true
  const [before = '', after] = wanted.split('*')
  if (after === undefined) return actual === wanted
  return actual.length >= before.length + after.length && actual.startsWith(before) && actual.endsWith(after)
}
