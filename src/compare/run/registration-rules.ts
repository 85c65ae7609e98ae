import type { DatedRule, OwnRules } from '../diff/index.ts'

/** V3's expand list asks for a list more than V2's (service.md 1.1), so that V2 never has it: that is the contract, not the data. */
const expandList: DatedRule = {
  name: 'expand-list-of-v3',
  reason: 'V3 expands EnrolmentStatuses, which the expand list of V2 does not name (service.md 1.1).',
  owner: 'Markbridge',
  expires: '9999-12-31',
  path: 'Enrolments/EnrolmentStatuses',
  when: { kind: 'extra' },
  expired: false,
}

/** The rules for registrations: what the two expand lists differ in, then the partner's own. */
export function registrationRules(own: OwnRules | undefined): OwnRules {
  const isExpandList = ({ path, kind, v2Class }: Parameters<OwnRules['find']>[0]): boolean =>
    path === expandList.path && kind === 'extra' && v2Class === 'missing'
  return {
    // Reports list the partner's own rules; a built-in one is named where it applies.
    all: own?.all ?? [],
    find: (difference) => (isExpandList(difference) ? expandList : own?.find(difference)),
  }
}
