import { Secret } from './secret.ts'

type Members = Readonly<Record<string, unknown>>

/** A partner that requests do not reach, or not by all of its keys. */
export interface HiddenPartner {
  readonly index: number
  readonly message: string
}

/**
 * Finds partners behind a wider match: the first partner that matches serves a request. `matches` are the `match` of each as
 * written. The work grows with the number of partners, not with its square.
 */
export function findHidden(matches: readonly Members[]): readonly HiddenPartner[] {
  const earlier = new EarlierWays()
  return matches.flatMap((match, index) => {
    const ways = waysOf(match)
    const hiders = ways.map((way) => earlier.firstCovering(way))
    for (const way of ways) earlier.add(way, index)
    const known = [...new Set(hiders)].filter((at) => at !== undefined).sort((one, other) => one - other)
    if (known.length === 0) return []
    if (!hiders.includes(undefined)) {
      const names = known.map((at) => `partners[${at}]`).join(' and ')
      const verb = known.length === 1 ? 'matches' : 'match'
      return [{ index, message: `no request reaches this partner: ${names} ${verb} first` }]
    }
    return hiders.flatMap((at) =>
      at === undefined ? [] : [{ index, message: `has a hash that partners[${at}] has as well` }],
    )
  })
}

/** One way by which requests match, as far as it can be read. */
type Way =
  | { readonly kind: 'any' }
  | { readonly kind: 'hash' | 'path'; readonly text: string }
  | { readonly kind: 'header'; readonly name: string; readonly text: string }

function waysOf({ any, subscriptionKeySha256, header, pathPrefix }: Members): readonly Way[] {
  if (any === true) return [{ kind: 'any' }]
  if (typeof pathPrefix === 'string')
    return [{ kind: 'path', text: `${pathPrefix.replace(/\/+$/, '')}/`.toLowerCase() }]
  const { name, value } = typeof header === 'object' && header !== null ? (header as Members) : {}
  if (typeof name === 'string' && (typeof value === 'string' || value instanceof Secret)) {
    const text = typeof value === 'string' ? value : value.reveal()
    return text === '' ? [] : [{ kind: 'header', name: name.toLowerCase(), text }]
  }
  return [subscriptionKeySha256]
    .flat()
    .filter((hash) => typeof hash === 'string')
    .map((hash) => ({ kind: 'hash', text: hash.toLowerCase() }))
}

/** The ways of the partners so far, each with the first partner that has it. */
class EarlierWays {
  private readonly firsts = new Map<string, number>()

  add(way: Way, index: number): void {
    const name = nameOf(way)
    if (!this.firsts.has(name)) this.firsts.set(name, index)
  }

  /** The first partner that matches every request which `way` matches. */
  firstCovering(way: Way): number | undefined {
    const everything = [nameOf({ kind: 'any' }), nameOf({ kind: 'path', text: '/' })]
    const same = way.kind === 'path' ? prefixesOf(way.text) : [nameOf(way)]
    const found = [...everything, ...same]
      .map((name) => this.firsts.get(name))
      .filter((index) => index !== undefined)
    return found.length === 0 ? undefined : Math.min(...found)
  }
}

/** Paths end with a slash, so that whole segments are compared. */
function prefixesOf(path: string): readonly string[] {
  return [...path.matchAll(/\//g)].map(({ index }) =>
    nameOf({ kind: 'path', text: path.slice(0, index + 1) }),
  )
}

const nameOf = (way: Way): string => JSON.stringify(way)
