import { isLoopback } from '../http/loopback.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** What the service allows to one integrator (service-facts 9). */
const SERVICE_LIMIT = 5

/**
 * The calls to V3 that a partner may make in a second; undefined: no limit. Left out, it is the service's limit, and none for
 * an upstream on a loopback address, which is a stand-in. Partners with one configured key share its calls, so that the
 * lowest of their rates counts.
 */
export function callsPerSecondOf(partner: PartnerConfig, config: Config): number | undefined {
  const own = partner.v3.subscriptionKey?.reveal()
  const sharing = config.partners.filter(
    (other) => other === partner || (own !== undefined && other.v3.subscriptionKey?.reveal() === own),
  )
  const standIn = isLoopback(config.upstreams.v3.baseUrl.hostname)
  const rates = sharing
    .map(({ v3 }) => v3.callsPerSecond ?? (standIn ? 'none' : SERVICE_LIMIT))
    .filter((rate) => rate !== 'none')
  return rates.length === 0 ? undefined : Math.min(...rates)
}
