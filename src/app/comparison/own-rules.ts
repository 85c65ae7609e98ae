import { createOwnRules, type OwnRules, type PartnerRule } from '../../compare/diff/index.ts'

/** The rules of partners' own, as they hold on a day. */
export interface LiveOwnRules {
  /** Undefined: the partner has none. */
  of(partner: string): OwnRules | undefined
  /** Another configuration is in use. */
  replace(partners: readonly PartnerRules[]): void
}

export interface PartnerRules {
  readonly id: string
  readonly rules: readonly PartnerRule[]
}

/** Creates the rules of a configuration; they are dated once a day, since one may expire while the adapter runs. */
export function createLiveOwnRules(given: readonly PartnerRules[], nowMs: () => number): LiveOwnRules {
  let partners = given
  let day = ''
  let dated = new Map<string, OwnRules>()
  return {
    of: (partner) => {
      const today = new Date(nowMs()).toISOString().slice(0, 10)
      if (today !== day) {
        const own = partners.filter(({ rules }) => rules.length > 0)
        dated = new Map(own.map(({ id, rules }) => [id, createOwnRules(rules, today)]))
        day = today
      }
      return dated.get(partner)
    },
    replace: (next) => {
      partners = next
      day = ''
    },
  }
}
