import { AdapterError } from '../../errors.ts'
import type { EntityType } from '../../odata/index.ts'
import { servedModel } from '../served-model.ts'
import { methodNotAllowed, notFound, refuseDomain } from '../edge/refusals.ts'
import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import type { QueryContext } from '../query/compile-query.ts'
import { countEntities, readEntities } from '../query/read-entities.ts'
import type { EntityCollection } from '../query/read-entities.ts'
import { readEntity } from '../query/read-entity.ts'
import { keyValues, readResource } from '../query/resource.ts'
import type { Resource } from '../query/resource.ts'
import type { School } from '../school.ts'
import type { LearnerSet } from '../seed/documents/entity-sets.ts'
import { findLearnerSet, findLookup } from './learner-entities.ts'
import type { LearnerEntities, LearnerEntity } from './learner-entities.ts'
import { patchPersonal } from './patch-personal.ts'
import { refuseMembers } from './refuse-members.ts'

/** Switches of the learner domains. */
export interface LearnerSwitches {
  readonly pageSize: number
  /** Sets that answer that they are not available (service.md 1.1). */
  readonly unavailable: ReadonlySet<string>
}

const notAvailable = odataError(501, 'NotAvailable', 'This sub domain is not currently available.')

/** Which sets a root offers: V2 has the registration only (service.md 9), that of the lookups the lookups. */
const offered = (set: LearnerSet, route: Route): boolean =>
  route.isLookup ? set.subject === 'lookup' : route.version !== 2 || set.name === 'LearnerRegistrations'

/** Creates the service of the learner domains, at every form of their paths. */
export function createLearnerService(
  school: School,
  entities: LearnerEntities,
  queryContext: () => QueryContext,
  switches: LearnerSwitches,
): (route: Route, request: ServiceRequest) => Reply {
  const about = (set: LearnerSet, list: readonly LearnerEntity[]): EntityCollection => ({
    ...{ typeName: typeOf(set).qualified, context: set.name },
    entities: list.map(({ entity }) => entity),
  })

  /** One entity of a set, or a resource below it; the members of a group need the permission of their own domain. */
  const single = (
    set: LearnerSet,
    resource: Resource,
    found: LearnerEntity,
    route: Route,
    request: ServiceRequest,
  ): Reply => {
    const [next] = resource.rest
    const isPersonal = set.name === 'LearnerPersonals' && next === undefined && !resource.isRaw
    if (request.method === 'PATCH' && isPersonal)
      return patchPersonal(school, found, queryContext().index, route, request)
    if (request.method !== 'GET')
      return isPersonal ? methodNotAllowed('GET', 'PATCH') : methodNotAllowed('GET')
    const link = next?.kind === 'property' ? next.name : ''
    const members = set.subject === 'group' ? findLearnerSet(link) : undefined
    const refusal =
      members === undefined ? undefined : refuseDomain(request.principal, members.securityDomain)
    if (refusal !== undefined) return refusal
    if (members !== undefined && switches.unavailable.has(members.name)) return notAvailable
    const target = { typeName: typeOf(set).qualified, context: set.name, entity: found.entity }
    return readEntity({ ...resource, ...target }, queryContext(), switches.pageSize, route, request)
  }

  return (route, request) => {
    const resource = readResource(route.resource)
    const lookup = resource === undefined || !route.isLookup ? undefined : findLookup(resource.set)
    const set = resource === undefined ? undefined : (lookup?.set ?? findLearnerSet(resource.set))
    if (resource === undefined || set === undefined || !offered(set, route)) return notFound
    const refusal = refuseDomain(request.principal, set.securityDomain) ?? refuseMembers(set, request)
    if (refusal !== undefined) return refusal
    if (switches.unavailable.has(set.name)) return notAvailable
    const [next, ...beyond] = resource.rest
    if (resource.key === undefined) {
      if (beyond.length > 0 || resource.isRaw) return notFound
      if (request.method !== 'GET') return methodNotAllowed('GET')
      const all = entities.all(set.name)
      const list =
        lookup === undefined ? all : all.filter(({ entity }) => entity['LookupType'] === lookup.type)
      if (next === undefined)
        return readEntities(about(set, list), queryContext(), switches.pageSize, route, request)
      return next.kind === '$count' ? countEntities(about(set, list), queryContext(), request) : notFound
    }
    const key = keyValues(resource.key, typeOf(set).type.key)?.join()
    const found = key === undefined ? undefined : entities.byKey(set.name, key)
    return found === undefined ? notFound : single(set, resource, found, route, request)
  }
}

interface SetType {
  readonly qualified: string
  readonly type: EntityType
}

/** The entity type of every set, by the set's name. */
const setTypes: ReadonlyMap<string, SetType> = new Map(
  servedModel.container.entitySets.flatMap(({ name, entityType }) =>
    servedModel.schemas.flatMap(({ namespace, entityTypes }) =>
      entityTypes
        .filter((type) => `${namespace}.${type.name}` === entityType)
        .map((type) => [name, { qualified: entityType, type }] as const),
    ),
  ),
)

function typeOf({ name }: LearnerSet): SetType {
  const found = setTypes.get(name)
  if (found === undefined) throw new AdapterError('ADP_INTERNAL', `The model has no entity set ${name}.`)
  return found
}
