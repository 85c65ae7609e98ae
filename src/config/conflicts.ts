import type { ErrorDetail } from '../errors.ts'
import { isLoopback } from '../http/address.ts'
import { Secret } from './secret.ts'

type Members = Readonly<Record<string, unknown>>

/**
 * Finds conflicts between values, such as duplicate ids, credentials that a path exposes, and partners that no request can reach. Reads the
 * input before validation, so that conflicts are found even if another part of the configuration is faulty.
 */
export function findConflicts(input: unknown): ErrorDetail[] {
  const config = membersOf(input)
  const partners = listOf(config['partners']).map(membersOf)
  const journal = membersOf(config['journal'])
  const rollout = membersOf(config['rollout'])
  const operators = listOf(rollout['operators']).map(membersOf)
  const hasV2 = membersOf(config['upstreams'])['v2'] !== undefined
  const hasJournal = !isNone(journal['url'])
  return [
    ...findRepeated(listOf(journal['keys']).map((key) => membersOf(key)['id']), 'id', 'journal.keys'),
    ...findTooFewOperators(rollout['approval'], operators, hasJournal),
    // Names that differ only in case are refused, because a reader of the audit trail would take two people for one person.
    ...findRepeated(operators.map(({ name }) => lowerCase(name)), 'name', 'rollout.operators'),
    ...findRepeated(operators.map(({ tokenSha256 }) => lowerCase(tokenSha256)), 'token', 'rollout.operators', 'tokenSha256'),
    ...findRepeated(partners.map(({ id }) => id), 'id', 'partners'),
    ...findOpenConsole(config['console'], operators, hasJournal),
    ...partners.flatMap((partner, index) => [
      ...findLentCredentials(partner, `partners[${index}]`),
      ...findStageFaults(partner, `partners[${index}]`, hasV2, hasJournal),
      ...findIncomplete(membersOf(membersOf(partner['v3'])['auth']), `partners[${index}].v3.auth`),
    ]),
    ...findUnreachable(partners.map(({ match }) => membersOf(match))),
  ] // prettier-ignore
}

const fault = (target: string, message: string): ErrorDetail => ({ code: 'conflict', message, target })

/** Finds entries of the list at `path` whose value an earlier entry already has. */
function findRepeated(values: readonly unknown[], word: string, path: string, member = word): ErrorDetail[] {
  const firsts = new Map<string, number>()
  return values.flatMap((value, index) => {
    if (typeof value !== 'string') return []
    const first = firsts.get(value)
    firsts.set(value, first ?? index)
    if (first === undefined) return []
    return [fault(`${path}[${index}].${member}`, `is already the ${word} of ${path}[${first}]`)]
  })
}

function findTooFewOperators(
  approval: unknown,
  operators: readonly Members[],
  hasJournal: boolean,
): ErrorDetail[] {
  if (approval !== 'two') return []
  const found: ErrorDetail[] = []
  if (!hasJournal)
    found.push(
      fault('rollout.approval', 'requires a journal. With journal.url: none, the stages come from this file'),
    )
  const proposers = operators.filter(({ role }) => role === 'operator').length
  const approvers = operators.filter(({ role }) => role === 'approver').length
  if (operators.length > 0 && (proposers === 0 || proposers + approvers < 2)) {
    const message =
      'requires an operator who proposes a step, and a second operator or an approver who approves the step'
    found.push(fault('rollout.approval', message))
  }
  return found
}

/** Finds faults in the access to the console. Without operators, only the link that the adapter prints on its terminal gives access. */
function findOpenConsole(given: unknown, operators: readonly Members[], hasJournal: boolean): ErrorDetail[] {
  if (given === undefined) return []
  const { host, identity, trustedProxies } = membersOf(given)
  const isOpen = typeof host === 'string' && !isLoopback(host.includes(':') ? `[${host}]` : host)
  return [
    ...(hasJournal
      ? []
      : [fault('console', 'requires a journal, because the console shows the contents of the journal')]),
    ...(isOpen && operators.length === 0
      ? [fault('console.host', 'is reachable from other machines. List the operators in rollout.operators')]
      : []),
    ...(identity !== undefined && operators.length === 0
      ? [fault('console.identity', 'requires operators, but rollout.operators is empty')]
      : []),
    ...(identity !== undefined && listOf(trustedProxies).length === 0
      ? [fault('console.identity', 'has no effect, because console.trustedProxies is empty')]
      : []),
  ]
}

/** Finds partners whose key or token every caller could use, because `any` and `pathPrefix` do not identify the caller. */
function findLentCredentials({ match, clients, v3 }: Members, path: string): ErrorDetail[] {
  const way = membersOf(match)
  const { subscriptionKey, auth } = membersOf(v3)
  const lends = subscriptionKey !== undefined || membersOf(auth)['mode'] === 'clientCredentials'
  const isOpen = way['any'] === true || way['pathPrefix'] !== undefined
  if (!lends || !isOpen || clients === 'open') return []
  const message =
    'must be "subscriptionKeySha256" or "header". With "any" or "pathPrefix", every caller of the address writes with the key or token of this partner. Match by a key or a header, or allow these writes with "clients: open"'
  return [fault(`${path}.match`, message)]
}

/** The stages at which V2 serves requests, and the stages at which the journal stores the writes that V2 serves. */
const servedByV2: readonly unknown[] = ['legacy', 'shadow', 'canary']
const journaled: readonly unknown[] = ['shadow', 'canary']

function findStageFaults(
  { stage, v2 }: Members,
  path: string,
  hasV2: boolean,
  hasJournal: boolean,
): ErrorDetail[] {
  const isServed = hasV2 || membersOf(v2)['baseUrl'] !== undefined
  const target = `${path}.stage`
  if (servedByV2.includes(stage) && !isServed)
    return [fault(target, `requires an address of V2. Set upstreams.v2.baseUrl or ${path}.v2.baseUrl`)]
  if (journaled.includes(stage) && !hasJournal)
    return [
      fault(target, 'requires a journal. With journal.url: none, the stage must be legacy, v3 or complete'),
    ]
  return []
}

/** The settings that client credentials require (service-facts 11). */
const clientMembers = ['tokenUrl', 'clientId', 'clientSecret', 'scope'] as const

function findIncomplete(auth: Members, path: string): ErrorDetail[] {
  const isClient = auth['mode'] === 'clientCredentials'
  const isKnown = isClient || auth['mode'] === undefined || auth['mode'] === 'passThrough'
  if (!isKnown) return []
  const members = isClient ? clientMembers : [...clientMembers, 'organisation']
  const message = isClient
    ? 'is required for mode: clientCredentials'
    : 'applies only to mode: clientCredentials'
  return members
    .filter((member) => (auth[member] === undefined) === isClient)
    .map((member) => fault(`${path}.${member}`, message))
}

/** Finds partners that never receive some of their requests, because a request belongs to the first partner that matches it. */
function findUnreachable(matches: readonly Members[]): ErrorDetail[] {
  const all = matches.map(waysOf)
  return all.flatMap((ways, index) => {
    const hiders = all.flatMap((others, at) => {
      const hides = at < index && ways.some((way) => others.some((other) => covers(other, way)))
      return hides ? [`partners[${at}]`] : []
    })
    if (hiders.length === 0) return []
    return [fault(`partners[${index}].match`, `matches requests that already go to ${hiders.join(' and ')}`)]
  })
}

const EVERY_PATH = 'path /'

/** Returns the ways in which a partner matches requests, as texts. A path ends with a slash, so that only whole segments match. */
function waysOf({ any, subscriptionKeySha256, header, pathPrefix }: Members): readonly string[] {
  if (any === true) return [EVERY_PATH]
  if (typeof pathPrefix === 'string') return [`path ${pathPrefix.replace(/\/+$/, '')}/`.toLowerCase()]
  const { name, value } = membersOf(header)
  const text = value instanceof Secret ? value.reveal() : value
  if (typeof name === 'string' && typeof text === 'string')
    return text === '' ? [] : [`header ${name.toLowerCase()}: ${text}`]
  return [subscriptionKeySha256]
    .flat()
    .filter((hash) => typeof hash === 'string')
    .map((hash) => `hash ${hash.toLowerCase()}`)
}

/** Returns true if `way` matches every request that `other` matches. */
const covers = (way: string, other: string): boolean =>
  way === EVERY_PATH || way === other || (way.startsWith('path ') && other.startsWith(way))

const lowerCase = (value: unknown): unknown => (typeof value === 'string' ? value.toLowerCase() : value)

function isNone(url: unknown): boolean {
  return (url instanceof Secret ? url.reveal() : url) === 'none'
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}
