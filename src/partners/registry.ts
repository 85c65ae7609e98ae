import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { pathOf } from '../http/request-target.ts'
import type { FindPartner, Partner } from './partner.ts'

/** Requests of one partner that are under way with the partner as it is configured now, or as it was before a reload. */
export interface UnderWay {
  readonly partner: string
  readonly revision: 'current' | 'previous'
  readonly requests: number
}

/** The partners of one adapter. All of them are replaced at once, while requests run. */
export interface PartnerRegistry {
  /** The partner of a request as it is configured now; a request keeps it to its end. */
  readonly find: FindPartner
  /**
   * The newest partner of this id. One that was removed stays as it was last, so that records which came at the moment of its
   * removal are finished.
   */
  of(id: string): Partner | undefined
  /** The partners as they are configured now, in the order in which they are tried. */
  partners(): readonly Partner[]
  /** Replaces all; requests under way keep theirs. A partner that did not change is the same object again. */
  replace(next: readonly Partner[]): void
  /** Counts a request of this partner until the function that is returned is called. */
  readonly enter: (partner: Partner) => () => void
  /** The counts above zero. */
  underWay(): readonly UnderWay[]
}

/** Creates the registry with the first partners. */
export function createRegistry(first: readonly Partner[]): PartnerRegistry {
  let partners: readonly Partner[] = []
  let find: FindPartner = () => undefined
  const newest = new Map<string, Partner>()
  const counts = new Map<Partner, number>()
  const replace = (next: readonly Partner[]): void => {
    partners = next
    find = createMatchIndex(next)
    for (const partner of next) newest.set(partner.id, partner)
  }
  const countOf = (partner: Partner): number => counts.get(partner) ?? 0
  replace(first)
  return {
    find: (request, subscriptionKey) => find(request, subscriptionKey),
    of: (id) => newest.get(id),
    partners: () => partners,
    replace,
    enter: (partner) => {
      counts.set(partner, countOf(partner) + 1)
      let left = false
      return () => {
        if (left) return
        left = true
        const count = countOf(partner) - 1
        if (count === 0) counts.delete(partner)
        else counts.set(partner, count)
      }
    },
    underWay: () => {
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

/** The time for which a lost write of a partner is read back, ms; for an unknown partner, the longest of all. */
export function longestReadBackMs(registry: Pick<PartnerRegistry, 'of' | 'partners'>, id: string): number {
  const known = registry.of(id)
  const times = (known === undefined ? registry.partners() : [known]).map(({ readBackAfterMs }) =>
    readBackAfterMs.reduce((sum, ms) => sum + ms, 0),
  )
  return Math.max(0, ...times)
}

/** Partners by their place in the list: the lowest place among those that match serves a request. */
type Places<Key> = Map<Key, number>

/**
 * Creates the index of partners; of several that match a request, the first one serves it. A request costs one lookup for each way
 * to match, however many partners there are.
 */
function createMatchIndex(partners: readonly Partner[]): FindPartner {
  const byHash: Places<string> = new Map()
  const byPath: Places<string> = new Map()
  /** By the name of the header, then by its value. */
  const byHeader = new Map<string, Places<string>>()
  let anyPlace = Infinity
  let deepest = 0
  for (const [place, { match }] of partners.entries()) {
    if ('any' in match) anyPlace = Math.min(anyPlace, place)
    else if ('subscriptionKeySha256' in match)
      for (const own of match.subscriptionKeySha256) addFirst(byHash, own, place)
    else if ('header' in match) {
      const name = match.header.name.toLowerCase()
      const values = byHeader.get(name) ?? new Map<string, number>()
      byHeader.set(name, addFirst(values, match.header.value, place))
    } else {
      const prefix = match.pathPrefix.replace(/\/+$/, '').toLowerCase()
      deepest = Math.max(deepest, segmentsIn(prefix))
      addFirst(byPath, prefix, place)
    }
  }
  const placeByHeader = ({ headers }: IncomingMessage): number => {
    let first = Infinity
    for (const [name, values] of byHeader) {
      const value = headers[name]
      if (typeof value === 'string') first = Math.min(first, values.get(value) ?? Infinity)
    }
    return first
  }
  return (request, subscriptionKey) => {
    const place = Math.min(
      anyPlace,
      byHash.size === 0 ? Infinity : (byHash.get(hash('sha256', subscriptionKey)) ?? Infinity),
      placeByHeader(request),
      byPath.size === 0 ? Infinity : placeByPath(byPath, pathOf(request).toLowerCase(), deepest),
    )
    return partners[place]
  }
}

function addFirst<Key>(places: Places<Key>, key: Key, place: number): Places<Key> {
  if (!places.has(key)) places.set(key, place)
  return places
}

const segmentsIn = (path: string): number => path.split('/').length - 1

/** Whole segments only, in any case as the routes: `/acme` is not a prefix of `/acme-two/V2`. */
function placeByPath(byPath: Places<string>, path: string, deepest: number): number {
  let first = byPath.get('') ?? Infinity
  let end = 0
  // Not deeper than the deepest prefix: a path may have thousands of segments.
  for (let depth = 1; depth <= deepest && end < path.length; depth += 1) {
    const slash = path.indexOf('/', end + 1)
    end = slash === -1 ? path.length : slash
    first = Math.min(first, byPath.get(path.slice(0, end)) ?? Infinity)
  }
  return first
}
