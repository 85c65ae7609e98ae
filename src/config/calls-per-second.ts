import { isLoopback } from '../http/loopback.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** The rate that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5

/**
 * The calls to V3 that each partner may make in a second; undefined: no limit. Left out, it is the service's limit, and none for
 * an upstream on a loopback address, which is a stand-in. Partners with one configured key share its calls, so that the
 * lowest of their rates counts.
 */
export function callsPerSecondOf({
  partners,
  upstreams,
}: Pick<Config, 'partners' | 'upstreams'>): (partner: PartnerConfig) => number | undefined {
  const unset = isLoopback(upstreams.v3.baseUrl.hostname) ? undefined : SERVICE_LIMIT
  const rateOf = ({ v3: { callsPerSecond = unset } }: PartnerConfig): number | undefined =>
    callsPerSecond === 'none' ? undefined : callsPerSecond
  const lowest = new Map<string, number>()
  for (const partner of partners) {
    const [key, rate] = [partner.v3.subscriptionKey?.reveal(), rateOf(partner)]
    if (key !== undefined && rate !== undefined) lowest.set(key, Math.min(rate, lowest.get(key) ?? rate))
  }
  return (partner) => {
    const key = partner.v3.subscriptionKey?.reveal()
    return key === undefined ? rateOf(partner) : lowest.get(key)
  }
}
