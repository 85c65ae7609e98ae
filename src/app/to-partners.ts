import { callsPerSecondOf, changedPaths, type Config } from '../config/index.ts'
import type { Partner } from '../partners/index.ts'
import { toPartner, toTokenSource } from './to-partner.ts'

/** A configuration with the partners that were made of it. */
export interface ConfiguredPartners {
  readonly config: Config
  readonly partners: readonly Partner[]
}

/**
 * The partners of a configuration. Given those of the one before, a partner that did not change is the same object, and one with the
 * same credentials for tokens keeps its token.
 */
export function toPartners(config: Config, before?: ConfiguredPartners): readonly Partner[] {
  const rateOf = callsPerSecondOf(config)
  const known = new Map(
    before?.config.partners.flatMap((own, index) => {
      const partner = before.partners[index]
      return partner === undefined ? [] : [[own.id, { own, partner }] as const]
    }),
  )
  return config.partners.map((own) => {
    const rate = rateOf(own)
    const old = known.get(own.id)
    if (old === undefined) return toPartner(own, rate, toTokenSource(own.v3.auth), config)
    const isSame = rate === old.partner.callsPerSecond && changedPaths(old.own, own).length === 0
    if (isSame) return old.partner
    const keepsTokens = changedPaths(old.own.v3.auth, own.v3.auth).length === 0
    return toPartner(own, rate, keepsTokens ? old.partner.tokens : toTokenSource(own.v3.auth), config)
  })
}
