import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { pathOf } from '../http/request-target.ts'
import { arrivalMs, type Partner } from './partner.ts'

/** The number of requests in progress that use the current configuration of a partner, or a configuration from before a reload. */
interface UnderWay {
  readonly partner: string
  readonly revision: 'current' | 'previous'
  readonly requests: number
}

/** The partners of one adapter. A reload replaces all of them at once, while requests are in progress. */
export type PartnerRegistry = ReturnType<typeof createRegistry>

export function createRegistry(first: readonly Partner[]) {
  let partners: readonly Partner[] = []
  const newest = new Map<string, Partner>()
  const counts = new Map<Partner, number>()
  const replace = (next: readonly Partner[]): void => {
    partners = next
    for (const partner of next) newest.set(partner.id, partner)
  }
  const countOf = (partner: Partner): number => counts.get(partner) ?? 0
  replace(first)
  return {
    /** Returns the partner of a request, or `undefined` if no partner matches. A request keeps its partner until it ends. */
    find: (request: IncomingMessage, subscriptionKey: string): Partner | undefined =>
      findFirst(partners, request, subscriptionKey),
    /** Returns the newest partner with this id, even after its removal, so that its open records can be finished. */
    of: (id: string): Partner | undefined => newest.get(id),
    partners: (): readonly Partner[] => partners,
    /** Replaces all partners. Requests in progress keep their partner. A partner that did not change must be the same object. */
    replace,
    /** Counts a request of this partner until the returned function is called. */
    enter: (partner: Partner): (() => void) => {
      counts.set(partner, countOf(partner) + 1)
      let hasEnded = false
      return () => {
        if (hasEnded) return
        hasEnded = true
        const count = countOf(partner) - 1
        if (count === 0) counts.delete(partner)
        else counts.set(partner, count)
      }
    },
    underWay: (): readonly UnderWay[] => {
      const current = new Set(partners)
      const sums = new Map<string, UnderWay>()
      for (const [partner, requests] of counts) {
        const revision = current.has(partner) ? 'current' : 'previous'
        const name = `${revision} ${partner.id}`
        const sum = requests + (sums.get(name)?.requests ?? 0)
        sums.set(name, { partner: partner.id, revision, requests: sum })
      }
      return [...sums.values()]
    },
  }
}

/**
 * Returns the time in milliseconds during which a lost write of a partner may still be applied, or the longest time of all partners if the
 * partner is not known. `missing` is the number of records with a lost outcome that may have been sent in one `$batch` (default 0).
 * `together` is the maximum number of records in a `$batch` when the records were sent (default: the current maximum of the partner).
 */
export function longestReadBackMs(
  registry: Pick<PartnerRegistry, 'of' | 'partners'>,
  id: string,
  missing = 0,
  together?: number,
): number {
  const known = registry.of(id)
  const times = (known === undefined ? registry.partners() : [known]).map((partner) => {
    const atOnce = together ?? partner.batch?.maxRecords ?? 1
    return arrivalMs(partner, atOnce > 1 ? Math.min(missing, atOnce) : 0)
  })
  return Math.max(0, ...times)
}

function findFirst(
  partners: readonly Partner[],
  request: IncomingMessage,
  subscriptionKey: string,
): Partner | undefined {
  let keyHash: string | undefined
  let path: string | undefined
  return partners.find(({ match }) => {
    if ('any' in match) return true
    if ('subscriptionKeySha256' in match)
      return match.subscriptionKeySha256.includes((keyHash ??= hash('sha256', subscriptionKey)))
    if ('header' in match) return request.headers[match.header.name.toLowerCase()] === match.header.value
    // Compares whole path segments, so that `/acme` is not a prefix of `/acme-two/V2`, and ignores letter case as the routes do.
    path ??= `${pathOf(request).toLowerCase()}/`
    return path.startsWith(`${match.pathPrefix.replace(/\/+$/, '').toLowerCase()}/`)
  })
}
