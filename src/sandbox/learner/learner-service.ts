import { AdapterError } from '../../errors.ts'
import type { EntityType } from '../../odata/index.ts'
import { servedModel } from '../served-model.ts'
import { methodNotAllowed, notFound, refuseDomain } from '../edge/refusals.ts'
import { jsonReply, odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import { contextRoot } from '../edge/request.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { entityReply } from '../query/collection.ts'
import { compileQuery } from '../query/compile-query.ts'
import type { QueryContext } from '../query/compile-query.ts'
import { findEntities, isEntity } from '../query/compiled-query.ts'
import { readEntities } from '../query/read-entities.ts'
import { readQuery } from '../query/read-query.ts'
import { keyValues, readResource } from '../query/resource.ts'
import type { School } from '../school.ts'
import type { LearnerSet } from '../seed/documents/entity-sets.ts'
import { findLearnerSet } from './learner-entities.ts'
import type { LearnerEntities, LearnerEntity } from './learner-entities.ts'
import { patchPersonal } from './patch-personal.ts'
import { refuseMembers } from './refuse-members.ts'

/** Switches of the learner domains. */
export interface LearnerSwitches {
  readonly pageSize: number
  /** Sets that answer that they are not available (service.md 1.1). */
  readonly unavailable: ReadonlySet<string>
}

/** Which sets a version offers: V2 has the registration only (service.md 9). */
const offered = (set: LearnerSet, route: Route): boolean =>
  route.version !== 2 || set.name === 'LearnerRegistrations'

/** Creates the service of the learner domains, at every form of their paths. */
export function createLearnerService(
  school: School,
  entities: LearnerEntities,
  queryContext: () => QueryContext,
  switches: LearnerSwitches,
): (route: Route, request: ServiceRequest) => Reply {
  const collection = (
    set: LearnerSet,
    list: readonly LearnerEntity[],
    route: Route,
    request: ServiceRequest,
  ): Reply => {
    const all = list.map(({ entity }) => entity)
    const about = { typeName: typeOf(set).qualified, context: set.name, entities: all }
    return readEntities(about, queryContext(), switches.pageSize, route, request)
  }

  const single = (set: LearnerSet, found: LearnerEntity, route: Route, request: ServiceRequest): Reply => {
    if (request.method === 'PATCH' && set.name === 'LearnerPersonals')
      return patchPersonal(school, found, route, request)
    if (request.method !== 'GET')
      return set.name === 'LearnerPersonals' ? methodNotAllowed('GET', 'PATCH') : methodNotAllowed('GET')
    const query = compileQuery(readQuery(request.query), typeOf(set).qualified, queryContext())
    return entityReply(200, contextRoot(route, request), set.name, query.project(found.entity))
  }

  /** `Set(key)/Link`: the members of a group, or a collection inside an entity. */
  const linked = (
    set: LearnerSet,
    link: string,
    found: LearnerEntity,
    route: Route,
    request: ServiceRequest,
  ): Reply => {
    const declared = typeOf(set).type.navigation.find(({ name }) => name === link)
    if (declared === undefined) return notFound
    if (request.method !== 'GET') return methodNotAllowed('GET')
    const target = set.subject === 'group' ? findLearnerSet(link) : undefined
    const refusal = target === undefined ? undefined : refuseDomain(request.principal, target.securityDomain)
    if (refusal !== undefined) return refusal
    const value = found.entity[link]
    const rows = Array.isArray(value) ? value.filter(isEntity) : []
    const context = target?.name ?? `${set.name}(${found.key})/${link}`
    const about = { typeName: declared.type, context, entities: rows }
    return readEntities(about, queryContext(), switches.pageSize, route, request)
  }

  const count = (set: LearnerSet, request: ServiceRequest): Reply => {
    const options = readQuery(request.query)
    const query = compileQuery(options, typeOf(set).qualified, queryContext())
    const all = entities.all(set.name).map(({ entity }) => entity)
    const reply = jsonReply(200, String(findEntities(query, all).length))
    return { ...reply, headers: { ...reply.headers, 'Content-Type': 'text/plain' } }
  }

  return (route, request) => {
    const resource = readResource(route.resource)
    const set = resource === undefined ? undefined : findLearnerSet(resource.set)
    if (resource === undefined || set === undefined || !offered(set, route)) return notFound
    const refusal = refuseDomain(request.principal, set.securityDomain) ?? refuseMembers(set, request)
    if (refusal !== undefined) return refusal
    if (switches.unavailable.has(set.name))
      return odataError(501, 'NotAvailable', 'This sub domain is not currently available.')
    const [next, ...beyond] = resource.rest
    if (beyond.length > 0) return notFound
    if (resource.key === undefined) {
      if (request.method !== 'GET') return methodNotAllowed('GET')
      if (next === undefined) return collection(set, entities.all(set.name), route, request)
      return next.kind === '$count' ? count(set, request) : notFound
    }
    const key = keyValues(resource.key, typeOf(set).type.key)?.join()
    const found = key === undefined ? undefined : entities.byKey(set.name, key)
    if (found === undefined) return notFound
    if (next === undefined) return single(set, found, route, request)
    return next.kind === 'property' ? linked(set, next.name, found, route, request) : notFound
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
