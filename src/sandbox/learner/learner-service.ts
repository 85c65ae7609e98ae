import { methodNotAllowed, notFound, odataError, refuseDomain, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import { type QueryContext, readQuery } from '../query/compile-query.ts'
import { countEntities, readEntities } from '../query/read-entities.ts'
import { keyValues, readEntity, readResource, type Resource } from '../query/read-entity.ts'
import type { School } from '../school.ts'
import type { LearnerEntity } from './compose-set.ts'
import { createLearnerEntities, memberSets } from './learner-entities.ts'
import { findLearnerSet, findLookup, type LearnerSet } from './learner-sets.ts'
import { patchPersonal } from './patch-personal.ts'

/** Switches of the learner domains. */
export interface LearnerSwitches {
  /** Sets that answer that they are not available (service.md 1.1). */
  readonly unavailable: ReadonlySet<string>
}

const notAvailable = odataError(501, 'NotAvailable', 'This sub domain is not currently available.')

/** Which sets a root offers: V2 has the registration only (service.md 9), that of the lookups the lookups. */
const offered = (set: LearnerSet, { route }: RoutedRequest): boolean =>
  route.isLookup ? set.subject === 'lookup' : route.version !== 2 || set.name === 'LearnerRegistrations'

/** Creates the service of the learner domains, at every form of their paths. */
export function createLearnerService(
  school: School,
  queryContext: () => QueryContext,
  { unavailable }: LearnerSwitches,
): (request: RoutedRequest) => Reply {
  const entities = createLearnerEntities(school)

  /** One entity of a set, or a resource below it; the members of a group need the permission of their own domain. */
  const single = (
    { set, typeName, resource }: { set: LearnerSet; typeName: string; resource: Resource },
    found: LearnerEntity,
    request: RoutedRequest,
  ): Reply => {
    const [next] = resource.rest
    const isPersonal = set.name === 'LearnerPersonals' && next === undefined && !resource.isRaw
    if (request.method === 'PATCH' && isPersonal) return patchPersonal(school, found, queryContext(), request)
    if (request.method !== 'GET')
      return isPersonal ? methodNotAllowed('GET', 'PATCH') : methodNotAllowed('GET')
    const link = next?.kind === 'property' ? next.name : ''
    const members = set.subject === 'group' ? findLearnerSet(link) : undefined
    const refusal =
      members === undefined ? undefined : refuseDomain(request.principal, members.securityDomain)
    if (refusal !== undefined) return refusal
    if (members !== undefined && unavailable.has(members.name)) return notAvailable
    const target = { ...resource, typeName, context: set.name, entity: found.entity }
    return readEntity(target, queryContext(), request)
  }

  return (request) => {
    const { route } = request
    const resource = readResource(route.resource)
    const lookup = resource === undefined || !route.isLookup ? undefined : findLookup(resource.set)
    const set = resource === undefined ? undefined : (lookup?.set ?? findLearnerSet(resource.set))
    if (resource === undefined || set === undefined || !offered(set, request)) return notFound
    const refusal = refuseDomain(request.principal, set.securityDomain) ?? refuseMembers(set, request)
    if (refusal !== undefined) return refusal
    if (unavailable.has(set.name)) return notAvailable
    const { index } = queryContext()
    const typeName = index.entitySets.get(set.name)?.entityType ?? ''
    const [next, ...beyond] = resource.rest
    if (resource.key === undefined) {
      if (beyond.length > 0 || resource.isRaw) return notFound
      if (request.method !== 'GET') return methodNotAllowed('GET')
      if (next !== undefined && next.kind !== '$count') return notFound
      const list = entities.all(set.name).map(({ entity }) => entity)
      const wanted = lookup && list.filter((entity) => entity['LookupType'] === lookup.type)
      const collection = { typeName, context: set.name, entities: wanted ?? list }
      return (next === undefined ? readEntities : countEntities)(collection, queryContext(), request)
    }
    const key = keyValues(resource.key, index.structured(typeName).key)?.join()
    const found = key === undefined ? undefined : entities.byKey(set.name, key)
    return found === undefined ? notFound : single({ set, typeName, resource }, found, request)
  }
}

/**
 * The gateway's refusal of a query on groups that reaches members whose own domain the token lacks. Every option counts, not
 * `$expand` alone: a filter or an order over members discloses as much of them as showing them does. Errors: `QueryError`.
 */
function refuseMembers(set: LearnerSet, { principal, query }: RoutedRequest): Reply | undefined {
  if (set.subject !== 'group' || principal.domains === undefined || query === '') return undefined
  for (const name of namesIn(readQuery(query))) {
    const reached = name === '*' ? memberSets : [findLearnerSet(name)].filter((found) => found !== undefined)
    for (const { securityDomain } of reached) {
      const refusal = refuseDomain(principal, securityDomain)
      if (refusal !== undefined) return refusal
    }
  }
  return undefined
}

/** The properties that a query names at any depth; `*` where it asks for all. */
function* namesIn(node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  if ('kind' in node && node.kind === 'star') yield '*'
  if ('kind' in node && node.kind === 'property' && 'name' in node && typeof node.name === 'string')
    yield node.name
  const inside: Iterable<unknown> = node instanceof Map ? node.values() : Object.values(node)
  for (const value of inside) yield* namesIn(value)
}
