import { z } from 'zod'

import { learnerPersonal } from '../../model/identity.ts'
import { serviceNamespace } from '../../model/notation.ts'
import { formatInstant } from '../dates.ts'
import { fields, type Json, parseRelaxedJson, readMembers, reference } from '../json.ts'
import { compileQuery, type QueryContext, readQuery } from '../query/compile-query.ts'
import { entityReply, presentationOf } from '../query/presentation.ts'
import { type Group, groupsOn, type LearnerEntity } from './compose-set.ts'
import { findLearnerSet, findLookup, type LearnerSet, learnerSets } from './learner-sets.ts'
import { methodNotAllowed, notFound, odataError, refuseDomain, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import { countEntities, readEntities } from '../query/read-entities.ts'
import { keyValues, readEntity, readResource, type Resource } from '../query/read-entity.ts'
import type { School } from '../school.ts'

/** The entities of the learner domains, composed once and kept until a client changes one or the day changes. */
interface LearnerEntities {
  all(set: string): readonly LearnerEntity[]
  byKey(set: string, key: string): LearnerEntity | undefined
}

/** The sets of members; links of LearnerGroup are named like the sets they lead to (service.md 2.2). */
const memberSets = learnerSets.filter(({ subject }) => subject === 'learner' || subject === 'contact')

interface KeptSet {
  readonly version: number
  readonly day: number
  readonly list: readonly LearnerEntity[]
  readonly byKey: ReadonlyMap<string, LearnerEntity>
}

/** Creates the cache of a school's learner entities. */
function createLearnerEntities(school: School): LearnerEntities {
  const kept = new Map<string, KeptSet>()
  const load = (name: string): KeptSet => {
    const version = school.patches.version()
    const day = school.today()
    const found = kept.get(name)
    if (found?.version === version && found.day === day) return found
    const list = name === 'LearnerGroups' ? groups(day) : composed(name, day)
    const loaded = { version, day, list, byKey: new Map(list.map((one) => [one.key, one])) }
    kept.set(name, loaded)
    return loaded
  }
  const composed = (name: string, day: number): LearnerEntity[] => {
    const set = findLearnerSet(name)
    const list = set === undefined ? [] : school.compose(set, day)
    if (name !== 'LearnerPersonals') return list
    const patches = school.patches.all()
    return list.map((one) => ({ ...one, entity: patches.get(one.learner) ?? one.entity }))
  }
  const all = (name: string): readonly LearnerEntity[] => load(name).list

  const groups = (day: number): LearnerEntity[] =>
    groupsOn(day, school.ids, school.roster.entries)
      .map((group) => ({ learner: 0, key: `${group.externalId},${group.type}`, entity: toEntity(group) }))
      .sort((one, other) => (one.key < other.key ? -1 : 1))

  /** A group has its member collections as getters: read where a query follows them, not before. */
  const toEntity = (group: Group): Record<string, Json> => {
    const entity: Record<string, Json> = {
      ExternalID: group.externalId,
      GroupType: group.type,
      ShortName: group.shortName,
      FullName: group.fullName,
      DisplayOrder: group.displayOrder,
    }
    for (const { name } of memberSets) {
      // Kept with the group, which is made anew when any entity changes: a filter may come here many times.
      let found: Json[] | undefined
      const get = (): Json[] =>
        (found ??= all(name).flatMap(({ learner, entity }) => (group.members.has(learner) ? [entity] : [])))
      Object.defineProperty(entity, name, { get, enumerable: false })
    }
    return entity
  }
  return { all, byKey: (set, key) => load(set).byKey.get(key) }
}

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

/**
 * Answers `PATCH …/LearnerPersonals(<id>)` (service.md 1.1; the form is not shown, so that of OData protocol 11.4.3):
 * the given properties are replaced, the others stay. 204, or 200 with the entity where the client prefers it; 400 with
 * every fault of the body, and nothing changed.
 */
function patchPersonal(
  school: School,
  found: LearnerEntity,
  context: QueryContext,
  request: RoutedRequest,
): Reply {
  const read = readMembers(changesSchema, parseRelaxedJson(request.body.toString('utf8')))
  if ('faults' in read)
    return odataError(400, 'InvalidBody', 'The body does not fit the type LearnerPersonal.', read.faults)
  const entity = { ...found.entity }
  for (const [name, value] of Object.entries(read.value)) if (value !== undefined) entity[name] = value
  school.patches.set(found.learner, entity)
  if (!/(^|[ ,;])return=representation([ ,;]|$)/i.test(request.header('prefer') ?? ''))
    return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
  const presentation = presentationOf({}, request, context.index)
  const { project } = compileQuery({}, `${serviceNamespace}.LearnerPersonal`, context, presentation.describe)
  const reply = entityReply(200, presentation, 'LearnerPersonals/$entity', project(entity))
  return { ...reply, headers: { ...reply.headers, 'Preference-Applied': 'return=representation' } }
}

/** What may be set of a LearnerPersonal; a key in the body is ignored (OData protocol 11.4.3). */
const changesSchema = z.strictObject(
  Object.fromEntries(learnerPersonal.properties.map(({ name, type }) => [name, changeable(name, type)])),
)

function changeable(name: string, type: string): z.ZodType<Json | undefined> {
  if (name === 'ExternalID')
    return z
      .unknown()
      .transform(() => undefined)
      .optional()
  if (type === 'Edm.String') return fields.string
  if (type === 'Edm.Boolean') return fields.boolean
  if (type === 'Edm.DateTimeOffset')
    return fields.instant.transform((ms) => (typeof ms === 'number' ? formatInstant(ms) : ms))
  return reference({ Code: fields.string, Description: fields.string }, 'ExternalID')
    .transform(({ Code = null, Description = null, ...id }) => ({ ...id, Code, Description }))
    .nullish()
}
