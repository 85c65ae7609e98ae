import type { ReplyPartForm } from '../../v2/index.ts'
import { absence, type Findings } from './findings.ts'

type Head = Pick<ReplyPartForm, 'mime' | 'http' | 'status' | 'reason' | 'changeset'>

/** Fields that paths may name: any other name is a service's own text. */
const shownFields = new Map(
  [
    'Content-Type',
    'Content-Transfer-Encoding',
    'Content-ID',
    'Content-Length',
    'OData-Version',
    'OData-EntityId',
    'Location',
    'ETag',
    'Preference-Applied',
    'Cache-Control',
    'DataServiceVersion',
  ].map((name) => [name.toLowerCase(), name]),
)

/** Sets the form of one part of V2's reply against that of the part that the adapter would have written: all but its body. */
export function comparePartForm(v2: Head, v3: Head, findings: Findings): void {
  if (v2.status !== v3.status)
    findings.differ('part/status', 'value', `status:${v2.status}`, `status:${v3.status}`)
  else if (v2.reason !== v3.reason)
    findings.differ('part/reason', 'value', reasonClass(v2, v3), reasonClass(v3, v3))
  if (v2.changeset !== v3.changeset)
    findings.differ('part/changeset', 'value', placeOf(v2.changeset), placeOf(v3.changeset))
  const [v2Id, v3Id] = [idOf(v2), idOf(v3)]
  if (v2Id.place !== v3Id.place) findings.differ('part/Content-ID', 'value', v2Id.place, v3Id.place)
  else if (v2Id.value !== v3Id.value) findings.differ('part/Content-ID', 'value', 'id:other', 'id:posted')
  compareFields('part', v2.mime, v3.mime, findings)
  // The fields of another status are those of another reply.
  if (v2.status === v3.status) compareFields('part/http', v2.http, v3.http, findings)
}

/** The class of a media type: itself where it is one of a batch reply. */
export function typeClass(value: string | undefined): string {
  if (value === undefined) return 'type:none'
  const plain = plainType(value)
  return /^(?:application\/(?:http|json|xml|problem\+json)|multipart\/mixed|text\/(?:plain|html))(?:;[a-z0-9.=_-]{1,40}){0,3}$/.test(
    plain,
  )
    ? `type:${plain}`
    : 'type:other'
}

function compareFields(
  place: string,
  v2: ReplyPartForm['mime'],
  v3: ReplyPartForm['mime'],
  findings: Findings,
): void {
  const [ofV2, ofV3] = [new Map(v2), new Map(v3)]
  for (const name of new Set([...ofV2.keys(), ...ofV3.keys()])) {
    if (name === 'content-id') continue
    const path = `${place}/${shownFields.get(name) ?? '(other)'}`
    const [own, built] = [ofV2.get(name), ofV3.get(name)]
    if (own === undefined || built === undefined)
      findings.differ(path, absence(own), fieldClass(own), fieldClass(built))
    else if (name === 'content-type') compareType(path, own, built, findings)
    else if (name === 'content-transfer-encoding' && own.toLowerCase() !== built.toLowerCase())
      findings.differ(path, 'value', 'encoding:other', 'encoding:binary')
  }
}

/** Parameters of JSON mean nothing to a reader of it; those of `application/http` decide whether a client reads the part. */
function compareType(path: string, v2: string, v3: string, findings: Findings): void {
  const [own, built] = [plainType(v2), plainType(v3)]
  if (own === built) return
  const isSameJson = [own, built].every((type) => type.startsWith('application/json'))
  if (isSameJson) findings.equal('media-type-parameters', path)
  else findings.differ(path, 'value', typeClass(v2), typeClass(v3))
}

const plainType = (value: string): string => value.toLowerCase().replaceAll(/\s+/g, '')

const fieldClass = (value: string | undefined): string => (value === undefined ? 'field:none' : 'field:set')

const placeOf = (changeset: number | undefined): string =>
  changeset === undefined ? 'place:batch' : `place:changeset`

function reasonClass({ reason }: Head, standard: Head): string {
  if (reason === '') return 'reason:none'
  return reason === standard.reason ? 'reason:standard' : 'reason:other'
}

function idOf({ mime, http }: Head): { readonly place: string; readonly value: string | undefined } {
  const [inMime, inHttp] = [mime, http].map((lines) => new Map(lines).get('content-id'))
  const places = [inMime === undefined ? '' : 'mime', inHttp === undefined ? '' : 'http'].join('')
  return { place: `in:${places === '' ? 'none' : places}`, value: inMime ?? inHttp }
}
