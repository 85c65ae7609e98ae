import { z } from 'zod'

import { learnerPersonal } from '../../model/identity.ts'
import { serviceNamespace } from '../../model/notation.ts'
import { parseJsonQuery } from '../../odata/index.ts'
import { formatInstant } from '../dates.ts'
import { type Entity, fields, type Json, parseRelaxedJson, readMembers, reference } from '../json.ts'
import { compileQuery, type QueryContext } from '../query/compile-query.ts'
import { entityReply, presentationOf } from '../query/presentation.ts'
import type { LearnerEntity } from './compose-set.ts'
import { groupsOn } from './samples.ts'
import { findLearnerSet, findLookup, type LearnerSet, learnerSets } from './learner-sets.ts'
import { notFound, odataError, refuseDomain, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import { listedRows } from '../query/read-collection.ts'
import { answerSet, readResource, type ServedSet } from '../query/serve-set.ts'
import type { School } from '../school.ts'

/** The sets of learners and contacts. A link of LearnerGroup has the same name as the set to which it leads (service.md 2.2). */
const memberSets = learnerSets.filter(({ subject }) => subject === 'learner' || subject === 'contact')

/** Returns a function that composes the entities of a set, and caches them until a client changes an entity or the day changes. */
function createLearnerEntities(school: School): (set: string) => readonly LearnerEntity[] {
  const cache = new Map<string, { version: number; day: number; list: readonly LearnerEntity[] }>()
  const all = (name: string): readonly LearnerEntity[] => {
    const version = school.patches.version()
    const day = school.today()
    const found = cache.get(name)
    if (found?.version === version && found.day === day) return found.list
    const list = name === 'LearnerGroups' ? groups(day) : composed(name, day)
    cache.set(name, { version, day, list })
    return list
  }
  const composed = (name: string, day: number): LearnerEntity[] => {
    const set = findLearnerSet(name)
    const list = set === undefined ? [] : school.compose(set, day)
    if (name !== 'LearnerPersonals') return list
    const patches = school.patches.all()
    return list.map((one) => ({ ...one, entity: patches.get(one.learner) ?? one.entity }))
  }
  /** Returns the groups of a day. The collections of their members are getters, so that a collection is built only if a query reads it. */
  const groups = (day: number): LearnerEntity[] =>
    groupsOn(day, school.ids, school.roster.entries).map(({ entity, members }) => {
      for (const { name } of memberSets) {
        // The getter caches the collection, because a filter may read it many times. After a change of an entity, the groups are built
        // again.
        let found: Json[] | undefined
        const get = (): Json[] =>
          (found ??= all(name).flatMap((one) => (members.has(one.learner) ? [one.entity] : [])))
        Object.defineProperty(entity, name, { get, enumerable: false })
      }
      return { learner: 0, entity }
    })
  return all
}

/** Returns true if a service root offers a set. V2 offers only registrations (service.md 9), and `Lookup` offers only lookups. */
const offered = (set: LearnerSet, { route }: RoutedRequest): boolean =>
  route.isLookup ? set.subject === 'lookup' : route.version !== 2 || set.name === 'LearnerRegistrations'

export function createLearnerService(
  school: School,
  queryContext: () => QueryContext,
): (request: RoutedRequest) => Reply {
  const entitiesOf = createLearnerEntities(school)
  return (request) => {
    const { route, principal } = request
    const resource = readResource(route.resource)
    const lookup = resource === undefined || !route.isLookup ? undefined : findLookup(resource.set)
    const set = resource === undefined ? undefined : (lookup?.set ?? findLearnerSet(resource.set))
    if (resource === undefined || set === undefined || !offered(set, request)) return notFound
    const [next] = resource.rest
    // A read of the members of a group also requires the permission for the set of the members.
    const link = set.subject === 'group' && next?.kind === 'property' ? findLearnerSet(next.name) : undefined
    for (const { securityDomain } of link === undefined ? [set] : [set, link]) {
      const refusal = refuseDomain(principal, securityDomain)
      if (refusal !== undefined) return refusal
    }
    const refusal = refuseMembers(set, request)
    if (refusal !== undefined) return refusal
    const context = queryContext()
    const list = entitiesOf(set.name)
    const entities = list.map(({ entity }) => entity)
    const wanted = lookup && entities.filter((entity) => entity['LookupType'] === lookup.type)
    const patch = (entity: Entity): Reply => {
      const found = list.find((one) => one.entity === entity)
      return found === undefined ? notFound : patchPersonal(school, found, context, request)
    }
    const served: ServedSet = {
      context: set.name,
      typeName: `${serviceNamespace}.${set.entityType}`,
      rows: listedRows(wanted ?? entities),
      ...(set.name === 'LearnerPersonals' ? { patch } : {}),
    }
    return answerSet(served, resource, context, request)
  }
}

/**
 * Refuses a query of groups that uses members whose security domain the token lacks. All options are checked, because a filter or an order
 * by a field of the members discloses as much as `$expand`. Throws `QueryError` if the query cannot be parsed.
 */
function refuseMembers(set: LearnerSet, { principal, query }: RoutedRequest): Reply | undefined {
  if (set.subject !== 'group' || principal.domains === undefined || query === '') return undefined
  for (const name of namesIn(parseJsonQuery(query))) {
    const reached = name === '*' ? memberSets : [findLearnerSet(name)].filter((found) => found !== undefined)
    for (const { securityDomain } of reached) {
      const refusal = refuseDomain(principal, securityDomain)
      if (refusal !== undefined) return refusal
    }
  }
  return undefined
}

/** Yields the names of the properties in a query at any depth, and `*` if the query contains `*`. */
function* namesIn(node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  if ('kind' in node && node.kind === 'star') yield '*'
  if ('kind' in node && node.kind === 'property' && 'name' in node && typeof node.name === 'string')
    yield node.name
  const inside: Iterable<unknown> = node instanceof Map ? node.values() : Object.values(node)
  for (const value of inside) yield* namesIn(value)
}

/**
 * Answers `PATCH …/LearnerPersonals(<id>)` (service.md 1.1) by replacing the given properties. Service.md does not show the form of the
 * request, so the request has the form of OData protocol 11.4.3. The status is 204, or 200 with the entity if the client prefers a body.
 * For an invalid body, the status is 400 with all errors, and the entity stays unchanged.
 */
function patchPersonal(
  school: School,
  { learner, entity: current }: LearnerEntity,
  context: QueryContext,
  request: RoutedRequest,
): Reply {
  const read = readMembers(changesSchema, parseRelaxedJson(request.body.toString('utf8')))
  if ('faults' in read)
    return odataError(
      400,
      'InvalidBody',
      'The body does not fit the type LearnerPersonal. Nothing was changed. Correct the listed members.',
      read.faults,
    )
  const entity = { ...current }
  for (const [name, value] of Object.entries(read.value)) if (value !== undefined) entity[name] = value
  school.patches.set(learner, entity)
  if (!/(^|[ ,;])return=representation([ ,;]|$)/i.test(request.header('prefer') ?? ''))
    return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
  const presentation = presentationOf({}, request)
  const { project } = compileQuery({}, `${serviceNamespace}.LearnerPersonal`, context, presentation.level)
  const reply = entityReply(200, presentation, 'LearnerPersonals/$entity', project(entity))
  return { ...reply, headers: { ...reply.headers, 'Preference-Applied': 'return=representation' } }
}

/** The schema of the body of a PATCH. A key in the body is ignored (OData protocol 11.4.3). */
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
