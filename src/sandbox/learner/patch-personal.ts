import { learnerPersonal } from '../../model/identity.ts'
import { serviceNamespace } from '../../model/notation.ts'
import type { ModelIndex, Property } from '../../odata/index.ts'
import { FieldReader, isMembers } from '../attendance/field-reader.ts'
import type { Members } from '../attendance/field-reader.ts'
import { parseRelaxedJson } from '../attendance/relaxed-json.ts'
import { formatInstant } from '../dates.ts'
import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { entityReply } from '../query/collection.ts'
import type { Entity } from '../query/compiled-query.ts'
import { presentationOf } from '../query/presentation.ts'
import type { School } from '../school.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import type { LearnerEntity } from './learner-entities.ts'

/**
 * Answers `PATCH …/LearnerPersonals(<id>)` (service.md 1.1; the form is not shown, so that of OData protocol 11.4.3):
 * the given properties are replaced, the others stay. 204, or 200 with the entity where the client prefers it; 400 with
 * every fault of the body, and nothing changed.
 */
export function patchPersonal(
  school: School,
  found: LearnerEntity,
  index: ModelIndex,
  route: Route,
  request: ServiceRequest,
): Reply {
  const body = parseRelaxedJson(request.body.toString('utf8'))
  if (!isMembers(body)) return odataError(400, 'InvalidBody', 'The body must be one JSON object.')
  const reader = new FieldReader()
  const changes = readChanges(body, reader)
  if (reader.faults.length > 0)
    return odataError(400, 'InvalidBody', 'The body does not fit the type LearnerPersonal.', reader.faults)
  const entity = { ...found.entity, ...changes }
  school.entities.update('LearnerPersonals', { ...found, body: JSON.stringify(entity) })
  if (/(^|[ ,;])return=representation([ ,;]|$)/i.test(request.header('prefer') ?? '')) {
    const presentation = presentationOf({}, route, request, index)
    const shown = withoutLinks(entity)
    const type = index.structured(`${serviceNamespace}.LearnerPersonal`)
    const described = presentation.describe?.(type, entity, shown, '').members ?? shown
    const reply = entityReply(200, presentation, 'LearnerPersonals/$entity', described)
    return { ...reply, headers: { ...reply.headers, 'Preference-Applied': 'return=representation' } }
  }
  return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
}

/** The entity as an answer shows it without `$expand`. */
function withoutLinks(entity: Entity): Record<string, Json> {
  const shown = learnerPersonal.properties.map(({ name }) => [name, entity[name] ?? null] as const)
  return Object.fromEntries(shown)
}

function readChanges(body: Members, reader: FieldReader): Record<string, Json> {
  const changes: Record<string, Json> = {}
  for (const [name, value] of Object.entries(body)) {
    if (name.includes('@')) continue
    const property = learnerPersonal.properties.find((one) => one.name === name)
    if (property === undefined) reader.refuse(name, `The property '${name.slice(0, 64)}' cannot be set.`)
    // A key in the body is ignored (OData protocol 11.4.3).
    else if (name !== 'ExternalID') changes[name] = value === null ? null : readValue(property, body, reader)
  }
  return changes
}

function readValue({ name, type }: Property, body: Members, reader: FieldReader): Json {
  if (type === 'Edm.String') return reader.string(body, '', name) ?? null
  if (type === 'Edm.Boolean') return reader.boolean(body, '', name) ?? null
  if (type === 'Edm.DateTimeOffset') {
    const instant = reader.instant(body, '', name)
    return instant === undefined ? null : formatInstant(instant)
  }
  const reference = reader.optional(body, '', name, isMembers, 'an object with ExternalID') ?? {}
  const path = `${name}/`
  const id = reader.guid(reference, path, 'ExternalID')
  if (reference['ExternalID'] === undefined)
    reader.refuse(`${path}ExternalID`, `${path}ExternalID is required.`)
  return {
    ExternalID: id ?? null,
    Code: reader.string(reference, path, 'Code') ?? null,
    Description: reader.string(reference, path, 'Description') ?? null,
  }
}
