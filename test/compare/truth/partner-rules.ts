import type { PartnerRule } from '../../../src/compare/diff/index.ts'
import type { Comparison, FieldDifference } from '../../../src/compare/verdict.ts'

/** The day of the runs: it decides which rules have expired. */
export const today = '2026-06-10'

const about = { reason: 'known of this service', owner: 'truth' }

/** Rules of a partner's own, with what each has to cover: decided here once more, without the differ. */
export const partnerRules: readonly (PartnerRule & {
  readonly covers: (difference: FieldDifference) => boolean
})[] = [
  {
    ...{ ...about, name: 'no-process', path: 'ChangeProcessName', expires: today, when: { v3Class: 'null' } },
    covers: ({ path, v3Class }) => path === 'ChangeProcessName' && v3Class === 'null',
  },
  {
    ...{ ...about, name: 'zero-minutes', path: 'MinutesLate', expires: '2099-12-31' },
    when: { v2Class: 'null', v3Class: 'number:0' },
    covers: ({ path, v2Class, v3Class }) =>
      path === 'MinutesLate' && v2Class === 'null' && v3Class === 'number:0',
  },
  {
    ...{ ...about, name: 'an-hour', path: 'RecordedOn', expires: '2026-06-09', when: { v3Class: 'time:*' } },
    covers: ({ path }) => path === 'RecordedOn',
  },
]

/** A comparison after the rules, and the expired ones that would have applied. */
export function applyRules(comparison: Comparison): { comparison: Comparison; expired: readonly string[] } {
  const { differences, equivalences, verdict } = comparison
  const rules = (difference: FieldDifference) => partnerRules.filter(({ covers }) => covers(difference))
  const isExpired = ({ expires }: PartnerRule): boolean => expires < today
  const accepted = differences.flatMap((difference) =>
    rules(difference).flatMap((rule) =>
      isExpired(rule) ? [] : [{ rule: rule.name, path: difference.path }],
    ),
  )
  const left = differences.filter((difference) => rules(difference).every(isExpired))
  const expired = new Set(differences.flatMap((difference) => rules(difference).filter(isExpired)))
  return {
    expired: [...expired].map(({ name }) => name),
    comparison: {
      verdict: verdict === 'differs' && left.length === 0 ? 'equivalent' : verdict,
      differences: left,
      equivalences: [...equivalences, ...accepted],
    },
  }
}
