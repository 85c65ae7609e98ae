import { changedPaths } from './changed-paths.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** A change after which a partner would no longer own the records that came from it. */
export interface OwnershipChange {
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
