import { AdapterError } from '../errors.ts'
import { journalUrlOf } from './journal-schema.ts'
import type { Config, PartnerConfig } from './schema.ts'
import { Secret } from './secret.ts'
import type { ListenerTls } from './tls-schema.ts'

/** Returns the paths, such as `listen.port`, at which two values of one schema differ. */
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

export interface ConfigChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** The paths of the changed keys that take effect only after a restart. */
  readonly needsRestart: readonly string[]
}

/** The sections that a reload does not apply, except for the keys that `appliedKeys` matches. */
const restartSections = ['listen', 'upstreams', 'journal', 'rollout', 'console', 'passThrough'] as const

/** Matches keys of `restartSections` that a reload applies. A listener can replace its certificate, but cannot begin or end to use TLS. */
const appliedKeys = /^(?:rollout\.operators\b|(?:listen|console)\.tls\.)/

/**
 * Returns the configuration that takes effect on a reload: the new configuration, but with the running values of the sections that need a
 * restart. Throws `ADP_CONFIGURATION` if the base URL of V3 differs, because the new keys and tokens are meant for the new URL, or if the
 * stage of a partner moves forward.
 */
export function planReload(running: Config, next: Config): { config: Config; changes: ConfigChanges } {
  const needsRestart = restartSections.flatMap((section) =>
    changedPaths(running[section], next[section], section).filter((path) => !appliedKeys.test(path)),
  )
  const target = needsRestart.find((path) => path === 'upstreams.v3.baseUrl')
  if (target !== undefined)
    throw refuseReload([
      { target, message: 'cannot change on a reload. Restart the adapter to apply the new value' },
    ])
  const raised = raisedStages(running, next)
  if (raised.length > 0) throw refuseReload(raised)
  const { upstreams, journal, passThrough } = running
  const listen = withCertificate(running.listen, next.listen)
  const console = running.console && withCertificate(running.console, next.console)
  const rollout = { ...running.rollout, operators: next.rollout.operators }
  return {
    config: { ...next, listen, upstreams, journal, rollout, console, passThrough },
    changes: { ...comparePartners(running, next), needsRestart },
  }
}

/** Returns the running settings of a listener with its next certificate. */
function withCertificate<Listener extends { readonly tls?: ListenerTls | undefined }>(
  running: Listener,
  next: { readonly tls?: ListenerTls | undefined } | undefined,
): Listener {
  return running.tls === undefined || next?.tls === undefined ? running : { ...running, tls: next.tls }
}

const stages: readonly string[] = ['legacy', 'shadow', 'canary', 'v3', 'complete']

/** Finds partners whose stage moves forward. With a journal, only `rollout set` may do this, because it drains requests before the step. */
function raisedStages(
  running: Config,
  next: Config,
): readonly { readonly target: string; readonly message: string }[] {
  if (journalUrlOf(running.journal) === 'none') return []
  const before = new Map(running.partners.map((partner) => [partner.id, partner]))
  return next.partners.flatMap(({ id, stage }, index) => {
    const own = before.get(id)
    if (own === undefined || stages.indexOf(stage) <= stages.indexOf(own.stage)) return []
    const message = `partner ${id} is at ${own.stage}. A reload cannot move a partner forward. Use markbridge rollout set`
    return [{ target: `partners[${index}].stage`, message }]
  })
}

/** Returns the error for a valid configuration that cannot replace the running configuration. */
export function refuseReload(
  faults: readonly { readonly target: string; readonly message: string }[],
): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The new configuration cannot replace the running one, which stays in effect:\n${faults.map(({ target, message }) => `  ${target}: ${message}`).join('\n')}`,
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

/** A change after which a partner would no longer own the records that it sent earlier. */
interface OwnershipChange {
  /** The id of the partner in the running configuration. */
  readonly partner: string
  /** The key in the new configuration that causes the change. */
  readonly target: string
  readonly change: string
}

/**
 * Finds the partners whose stored records would lose their owner or get another owner. A partner is affected if it is removed or renamed, if
 * its `match` changes, or if its rules for the owner of a batch change. Adding or removing subscription keys is allowed if at least one key
 * stays and no key moves to another partner.
 */
export function ownershipChanges(running: Config, next: Config): readonly OwnershipChange[] {
  const after = new Map(next.partners.map((partner, index) => [partner.id, { partner, index }]))
  const keyOwners = new Map(
    next.partners.flatMap(({ id, match }) => keysOf(match).map((key) => [key, id] as const)),
  )
  return running.partners.flatMap((before): readonly OwnershipChange[] => {
    const found = after.get(before.id)
    if (found === undefined)
      return [{ partner: before.id, target: 'partners', change: 'removes the partner' }]
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
        : [
            isOf(
              'match',
              loses ? 'gives a key of the partner to another partner' : 'matches the partner in another way',
            ),
          ]),
      ...(changedPaths(before.identity, found.partner.identity).length === 0
        ? []
        : [isOf('identity.claims', 'distinguishes the clients of the partner by other claims')]),
      ...(before.v3.auth.mode === found.partner.v3.auth.mode
        ? []
        : [isOf('v3.auth.mode', 'sends the records of the partner with other tokens')]),
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
