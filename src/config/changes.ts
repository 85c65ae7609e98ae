import { AdapterError } from '../errors.ts'
import { journalUrlOf } from './journal-schema.ts'
import type { Config, PartnerConfig } from './schema.ts'
import { Secret } from './secret.ts'

/** Paths of the values that differ between two values of one schema, such as `listen.port`; no value is in them. */
export function changedPaths(before: unknown, after: unknown, path = ''): readonly string[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    const longer = before.length > after.length ? before : after
    return longer.flatMap((_, index) => changedPaths(before[index], after[index], `${path}[${index}]`))
  }
  if (isMapping(before) && isMapping(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names].flatMap((name) =>
      changedPaths(before[name], after[name], path === '' ? name : `${path}.${name}`),
    )
  }
  return isSame(before, after) ? [] : [path]
}

function isSame(before: unknown, after: unknown): boolean {
  if (before instanceof Secret && after instanceof Secret) return before.reveal() === after.reveal()
  if (before instanceof URL && after instanceof URL) return before.href === after.href
  return before === after
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** The changes of a new configuration to the running one. */
export interface ConfigChanges {
  /** Ids of partners. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Paths of the keys that differ from those in use and take effect with the next start. */
  readonly needsRestart: readonly string[]
}

/** The sections of the file that a reload leaves as they are. */
const restartSections = ['listen', 'upstreams', 'journal', 'rollout', 'console', 'passThrough'] as const

/** Only the commands of `rollout`, which read the file each time, and the console use them. */
const commandKeys = /^rollout\.operators\b/

/**
 * Decides what of a new configuration takes effect while the adapter runs: it, with the sections that need a restart as they are in use. Error: `ADP_CONFIGURATION` where the base address of V3
 * differs, since keys and tokens of the new partners are for the service at the new address.
 */
export function planReload(running: Config, next: Config): { config: Config; changes: ConfigChanges } {
  const needsRestart = restartSections.flatMap((section) =>
    changedPaths(running[section], next[section], section).filter((path) => !commandKeys.test(path)),
  )
  const target = needsRestart.find((path) => path === 'upstreams.v3.baseUrl')
  if (target !== undefined) throw refuseReload([{ target, message: 'needs a restart when it changes' }])
  const raised = raisedStages(running, next)
  if (raised.length > 0) throw refuseReload(raised)
  const { listen, upstreams, journal, console, passThrough } = running
  const rollout = { ...running.rollout, operators: next.rollout.operators }
  return {
    config: { ...next, listen, upstreams, journal, rollout, console, passThrough },
    changes: { ...comparePartners(running, next), needsRestart },
  }
}

const stages: readonly string[] = ['legacy', 'shadow', 'canary', 'v3', 'complete']

/** A step forward has to drain, which a reload does not: the command does. Without a journal there is the file alone. */
function raisedStages(
  running: Config,
  next: Config,
): readonly { readonly target: string; readonly message: string }[] {
  if (journalUrlOf(running.journal) === 'none') return []
  const before = new Map(running.partners.map((partner) => [partner.id, partner]))
  return next.partners.flatMap(({ id, stage }, index) => {
    const own = before.get(id)
    if (own === undefined || stages.indexOf(stage) <= stages.indexOf(own.stage)) return []
    const message = `partner ${id} is at ${own.stage}: markbridge rollout set takes it forward, a reload does not`
    return [{ target: `partners[${index}].stage`, message }]
  })
}

/** The error of a configuration that is valid and cannot replace the running one. */
export function refuseReload(
  faults: readonly { readonly target: string; readonly message: string }[],
): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The configuration cannot replace the running one:\n${faults.map(({ target, message }) => `  ${target}: ${message}`).join('\n')}`,
    { details: faults.map((fault) => ({ code: 'reload', ...fault })) },
  )
}

function comparePartners(running: Config, next: Config): Omit<ConfigChanges, 'needsRestart'> {
  const before = new Map(running.partners.map((partner) => [partner.id, partner]))
  const after = new Set(next.partners.map(({ id }) => id))
  const idsOf = (partners: Config['partners']): string[] => partners.map(({ id }) => id)
  return {
    added: idsOf(next.partners.filter(({ id }) => !before.has(id))),
    removed: idsOf(running.partners.filter(({ id }) => !after.has(id))),
    changed: idsOf(
      next.partners.filter((partner) => {
        const old = before.get(partner.id)
        return old !== undefined && changedPaths(old, partner).length > 0
      }),
    ),
  }
}

/** A change after which a partner would no longer own the records that came from it. */
interface OwnershipChange {
  /** The id of the partner as it is running. */
  readonly partner: string
  /** The key of the new configuration that changes it. */
  readonly target: string
  readonly change: string
}

/**
 * Finds the partners whose records would have no owner, or another one: removed, renamed, known by something else, or with other
 * rules for who owns a batch. Keys that are added to a list or taken from it are a client's own affair, as long as one of them stays
 * and none goes to another partner.
 */
export function ownershipChanges(running: Config, next: Config): readonly OwnershipChange[] {
  const after = new Map(next.partners.map((partner, index) => [partner.id, { partner, index }]))
  const keyOwners = new Map(
    next.partners.flatMap(({ id, match }) => keysOf(match).map((key) => [key, id] as const)),
  )
  return running.partners.flatMap((before): readonly OwnershipChange[] => {
    const found = after.get(before.id)
    if (found === undefined) return [{ partner: before.id, target: 'partners', change: 'removes it' }]
    const path = `partners[${found.index}]`
    const isOf = (target: string, change: string): OwnershipChange => ({
      partner: before.id,
      target: `${path}.${target}`,
      change,
    })
    const loses = keysOf(before.match).some((key) => (keyOwners.get(key) ?? before.id) !== before.id)
    return [
      ...(isSameClient(before.match, found.partner.match) && !loses
        ? []
        : [isOf('match', loses ? 'gives one of its keys to another partner' : 'matches other requests')]),
      ...(changedPaths(before.identity, found.partner.identity).length === 0
        ? []
        : [isOf('identity.claims', 'separates its clients by other claims')]),
      ...(before.v3.auth.mode === found.partner.v3.auth.mode
        ? []
        : [isOf('v3.auth.mode', 'changes whose tokens its records are sent with')]),
    ]
  })
}

type Match = PartnerConfig['match']

function keysOf(match: Match): readonly string[] {
  return 'subscriptionKeySha256' in match ? match.subscriptionKeySha256 : []
}

function isSameClient(before: Match, after: Match): boolean {
  if ('subscriptionKeySha256' in before && 'subscriptionKeySha256' in after)
    return before.subscriptionKeySha256.some((key) => after.subscriptionKeySha256.includes(key))
  return changedPaths(before, after).length === 0
}
