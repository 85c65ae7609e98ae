import { createOwnRules, type OwnRules } from '../compare/diff/index.ts'
import type { Config } from '../config/index.ts'

/** The rules of partners' own, as they hold on a day. */
export interface LiveOwnRules {
  /** Undefined: the partner has none. */
  of(partner: string): OwnRules | undefined
  /** Another configuration is in use. */
  replace(config: Pick<Config, 'partners'>): void
}

/** Creates the rules of a configuration; they are dated once a day, since one may expire while the adapter runs. */
export function createLiveOwnRules(config: Pick<Config, 'partners'>, nowMs: () => number): LiveOwnRules {
  let { partners } = config
  let day = ''
  let dated = new Map<string, OwnRules>()
  return {
    of: (partner) => {
      const today = new Date(nowMs()).toISOString().slice(0, 10)
      if (today !== day) {
        const own = partners.filter(({ compare }) => compare.rules.length > 0)
        dated = new Map(own.map(({ id, compare }) => [id, createOwnRules(compare.rules, today)]))
        day = today
      }
      return dated.get(partner)
    },
    replace: (next) => {
      partners = next.partners
      day = ''
    },
  }
}
