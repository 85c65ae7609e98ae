import type { Comparison, FieldDifference, FieldEquivalence } from '../verdict.ts'
import type { OwnRules, ValueDifference } from './own-rules.ts'

/** A record with nothing to say of it; shared, so that equal records cost no memory. */
export const SAME: Comparison = { verdict: 'same', differences: [], equivalences: [] }
export const UNKNOWN: Comparison = { verdict: 'unknown', differences: [], equivalences: [] }

/** Different findings of one record; a service that sends more of them sends something else than records. */
const MAX_FINDINGS = 200

/** Collects what a comparison of one record finds; the same finding twice counts once. */
export interface Findings {
  differ(difference: ValueDifference): void
  agree(rule: string, path: string): void
  /** The record cannot be compared. */
  giveUp(): void
  result(): Comparison
}

export function createFindings(rules: OwnRules | undefined): Findings {
  const differences = new Map<string, FieldDifference>()
  const equivalences = new Map<string, FieldEquivalence>()
  const expired = new Set<string>()
  let isUnknown = false

  const agree = (rule: string, path: string): void => {
    if (equivalences.size < MAX_FINDINGS) equivalences.set(`${rule} ${path}`, { rule, path })
  }
  return {
    agree,
    differ: (difference) => {
      const rule = rules?.find(difference)
      if (rule?.expired === false) {
        agree(rule.name, difference.path)
        return
      }
      if (rule !== undefined) expired.add(rule.name)
      const { path, kind, v2Class, v3Class } = difference
      const key = `${path}\n${kind}\n${v2Class}\n${v3Class}`
      if (differences.size < MAX_FINDINGS) differences.set(key, { path, kind, v2Class, v3Class })
    },
    giveUp: () => {
      isUnknown = true
    },
    result: () => {
      if (isUnknown) return UNKNOWN
      if (differences.size + equivalences.size === 0) return SAME
      return {
        verdict: differences.size > 0 ? 'differs' : 'equivalent',
        differences: [...differences.values()],
        equivalences: [...equivalences.values()],
        ...(expired.size > 0 && { expiredRules: [...expired] }),
      }
    },
  }
}
