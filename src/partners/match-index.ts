import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { pathOf } from '../http/request-target.ts'
import type { FindPartner, Partner } from './partner.ts'

/** Partners by their place in the list: the lowest place among those that match serves a request. */
type Places<Key> = Map<Key, number>

/**
 * Creates the index of partners; of several that match a request, the first one serves it. A request costs one lookup for each way
 * to match, however many partners there are.
 */
export function createMatchIndex(partners: readonly Partner[]): FindPartner {
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
