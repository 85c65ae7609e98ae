import type { ErrorDetail } from '../errors.ts'
import { findHidden } from './find-hidden.ts'
import { findOperatorConflicts } from './find-operator-conflicts.ts'
import { findRecordConflicts } from './find-record-conflicts.ts'
import { findStageConflicts } from './find-stage-conflicts.ts'
import { Secret } from './secret.ts'

type Members = Readonly<Record<string, unknown>>

/** The members that client credentials require (service-facts 11). */
const clientMembers = ['tokenUrl', 'clientId', 'clientSecret', 'scope'] as const

const openMessage =
  'must be subscriptionKeySha256 or header: with any or pathPrefix every caller of the address writes with the key or token of this partner. Set clients: open to accept that'

/**
 * Finds conflicts between values: duplicate ids, credentials that a path exposes, partners that no request reaches. It reads the
 * configuration as written, so that it finds them even if another part is faulty.
 */
export function findConflicts(input: unknown): ErrorDetail[] {
  const config = membersOf(input)
  const partners = listOf(config['partners']).map(membersOf)
  const journal = membersOf(config['journal'])
  const keys = listOf(journal['keys']).map(membersOf)
  const given = {
    hasV2: membersOf(config['upstreams'])['v2'] !== undefined,
    hasJournal: !isNone(journal['url']),
  }
  const { approval, operators } = membersOf(config['rollout'])
  return [
    ...usedTwice(keys, 'journal.keys'),
    ...findOperatorConflicts(approval, listOf(operators).map(membersOf), given),
    ...usedTwice(partners, 'partners'),
    ...partners.flatMap((partner, index) => [
      ...findLent(partner, `partners[${index}]`),
      ...findStageConflicts(partner, `partners[${index}]`, given),
      ...findIncomplete(membersOf(membersOf(partner['v3'])['auth']), `partners[${index}].v3.auth`),
    ]),
    ...findRecordConflicts(partners.map(({ record }) => membersOf(record))),
    ...findHidden(partners.map(({ match }) => membersOf(match))).map(({ index, message }) =>
      fault(`partners[${index}].match`, message),
    ),
  ]
}

function isNone(url: unknown): boolean {
  return (url instanceof Secret ? url.reveal() : url) === 'none'
}

function usedTwice(items: readonly Members[], path: string): ErrorDetail[] {
  const firsts = new Map<string, number>()
  return items.flatMap(({ id }, index) => {
    if (typeof id !== 'string') return []
    const first = firsts.get(id)
    if (first !== undefined) return [fault(`${path}[${index}].id`, `is the id of ${path}[${first}] as well`)]
    firsts.set(id, index)
    return []
  })
}

/** A path identifies no client, so every caller could use a credential that depends on it. */
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

function fault(target: string, message: string): ErrorDetail {
  return { code: 'conflict', message, target }
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}
