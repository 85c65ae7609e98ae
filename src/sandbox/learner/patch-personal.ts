import { learnerPersonal } from '../../model/identity.ts'
import { serviceNamespace } from '../../model/notation.ts'
import type { Property } from '../../odata/index.ts'
import { formatInstant } from '../dates.ts'
import { odataError, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import { FieldReader, isMembers, type Json, type Members, parseRelaxedJson } from '../json.ts'
import { compileQuery, type QueryContext } from '../query/compile-query.ts'
import { entityReply, presentationOf } from '../query/presentation.ts'
import type { School } from '../school.ts'
import type { LearnerEntity } from './compose-set.ts'

/**
 * Answers `PATCH …/LearnerPersonals(<id>)` (service.md 1.1; the form is not shown, so that of OData protocol 11.4.3):
 * the given properties are replaced, the others stay. 204, or 200 with the entity where the client prefers it; 400 with
 * every fault of the body, and nothing changed.
 */
export function patchPersonal(
  school: School,
  found: LearnerEntity,
  context: QueryContext,
  request: RoutedRequest,
): Reply {
  const body = parseRelaxedJson(request.body.toString('utf8'))
  if (!isMembers(body)) return odataError(400, 'InvalidBody', 'The body must be one JSON object.')
  const reader = new FieldReader()
  const changes = readChanges(body, reader)
  if (reader.faults.length > 0)
    return odataError(400, 'InvalidBody', 'The body does not fit the type LearnerPersonal.', reader.faults)
  const entity = { ...found.entity, ...changes }
  school.patches.set(found.learner, entity)
  if (!/(^|[ ,;])return=representation([ ,;]|$)/i.test(request.header('prefer') ?? ''))
    return { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
  const presentation = presentationOf({}, request, context.index)
  const { project } = compileQuery({}, `${serviceNamespace}.LearnerPersonal`, context, presentation.describe)
  const reply = entityReply(200, presentation, 'LearnerPersonals/$entity', project(entity))
  return { ...reply, headers: { ...reply.headers, 'Preference-Applied': 'return=representation' } }
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
