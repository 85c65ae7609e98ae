import type { ErrorDetail } from '../errors.ts'
import { Secret } from './secret.ts'

type Members = Readonly<Record<string, unknown>>

/** What client credentials need (service-facts 11). */
const clientMembers = ['tokenUrl', 'clientId', 'clientSecret', 'scope'] as const

const openMessage =
  'must be subscriptionKeySha256 or header: any and pathPrefix lend the key or token of this partner to whoever knows the address. clients: open of the partner accepts that'

/**
 * Finds the faults that lie between values: ids used twice, credentials that a path lends, partners that no request reaches. It
 * reads the configuration as it was written, so that it finds them also where another part is faulty.
 */
export function findConflicts(input: unknown): ErrorDetail[] {
  const config = membersOf(input)
  const partners = listOf(config['partners']).map(membersOf)
  const keys = listOf(membersOf(config['journal'])['keys']).map(membersOf)
  return [
    ...usedTwice(keys, 'journal.keys'),
    ...usedTwice(partners, 'partners'),
    ...partners.flatMap((partner, index) => [
      ...findLent(partner, `partners[${index}]`),
      ...findIncomplete(membersOf(membersOf(partner['v3'])['auth']), `partners[${index}].v3.auth`),
      ...findHidden(partners, index),
    ]),
  ]
}

function usedTwice(items: readonly Members[], path: string): ErrorDetail[] {
  return items.flatMap(({ id }, index) => {
    const first = items.findIndex((other) => other['id'] === id)
    const isTwice = typeof id === 'string' && first < index
    return isTwice ? [fault(`${path}[${index}].id`, `is the id of ${path}[${first}] as well`)] : []
  })
}

/** A path names no client, so a credential that goes with it is open to everybody. */
function findLent({ match, clients, v3 }: Members, path: string): ErrorDetail[] {
  const way = membersOf(match)
  const { subscriptionKey, auth } = membersOf(v3)
  const lends = subscriptionKey !== undefined || membersOf(auth)['mode'] === 'clientCredentials'
  const isOpen = way['any'] === true || way['pathPrefix'] !== undefined
  return lends && isOpen && clients !== 'open' ? [fault(`${path}.match`, openMessage)] : []
}

function findIncomplete(auth: Members, path: string): ErrorDetail[] {
  const isClient = auth['mode'] === 'clientCredentials'
  const isKnown = isClient || auth['mode'] === undefined || auth['mode'] === 'passThrough'
  if (!isKnown) return []
  const members = isClient ? clientMembers : [...clientMembers, 'organisation']
  const message = isClient ? 'is required for clientCredentials' : 'is for mode clientCredentials only'
  return members
    .filter((member) => (auth[member] === undefined) === isClient)
    .map((member) => fault(`${path}.${member}`, message))
}

/** The first partner that matches serves a request, so one behind a wider match is never reached. */
function findHidden(partners: readonly Members[], index: number): ErrorDetail[] {
  const own = waysOf(partners[index] ?? {})
  if (own.length === 0) return []
  const earlier = partners.slice(0, index).map(waysOf)
  const target = `partners[${index}].match`
  const before = (way: Way): number => earlier.findIndex((ways) => ways.some((other) => covers(other, way)))
  const hiders = [...new Set(own.map(before))].sort((one, other) => one - other)
  if (!hiders.includes(-1)) {
    const names = hiders.map((at) => `partners[${at}]`).join(' and ')
    const verb = hiders.length === 1 ? 'matches' : 'match'
    return [fault(target, `no request reaches this partner: ${names} ${verb} first`)]
  }
  return own.flatMap((way) =>
    way.kind === 'hash' && before(way) !== -1
      ? [fault(target, `has a hash that partners[${before(way)}] has as well`)]
      : [],
  )
}

/** One way by which requests match, as far as it can be read. */
type Way =
  | { readonly kind: 'any' }
  | { readonly kind: 'hash' | 'path'; readonly text: string }
  | { readonly kind: 'header'; readonly name: string; readonly text: string }

function waysOf({ match }: Members): readonly Way[] {
  const { any, subscriptionKeySha256, header, pathPrefix } = membersOf(match)
  if (any === true) return [{ kind: 'any' }]
  if (typeof pathPrefix === 'string')
    return [{ kind: 'path', text: `${pathPrefix.replace(/\/+$/, '')}/`.toLowerCase() }]
  const { name, value } = membersOf(header)
  if (typeof name === 'string' && (typeof value === 'string' || value instanceof Secret)) {
    const text = typeof value === 'string' ? value : value.reveal()
    return text === '' ? [] : [{ kind: 'header', name: name.toLowerCase(), text }]
  }
  return [subscriptionKeySha256]
    .flat()
    .filter((hash) => typeof hash === 'string')
    .map((hash) => ({ kind: 'hash', text: hash.toLowerCase() }))
}

/** Whether every request that matches `own` matches `other`. */
function covers(other: Way, own: Way): boolean {
  if (other.kind === 'any') return true
  if (other.kind === 'path' && other.text === '/') return true
  if (own.kind === 'any' || other.kind !== own.kind) return false
  if (other.kind === 'path') return own.text.startsWith(other.text)
  if (other.kind === 'header')
    return own.kind === 'header' && other.name === own.name && other.text === own.text
  return other.text === own.text
}

function fault(target: string, message: string): ErrorDetail {
  return { code: 'conflict', message, target }
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}
