import { attendanceV2Model } from '../../model/attendance-v2.ts'
import { serviceModel } from '../../model/service-model.ts'
import type { ServiceModel } from '../../odata/index.ts'

/** Names of members that the service declares, and those of its error forms. */
export const knownMembers: ReadonlySet<string> = new Set([
  ...[attendanceV2Model, serviceModel].flatMap(namesOf),
  'Message',
  'ErrorCode',
  'ResourceIdentifier',
  'SequenceID',
  'error',
  'code',
  'message',
  'target',
  'details',
  'innererror',
  'value',
  'data',
  'statusCode',
])

function namesOf({ schemas, container }: ServiceModel): string[] {
  const types = schemas.flatMap(({ complexTypes, entityTypes }) => [...complexTypes, ...entityTypes])
  return [
    ...types.flatMap(({ name, properties, navigation }) => [
      name,
      ...properties.map((property) => property.name),
      ...navigation.map((property) => property.name),
    ]),
    ...container.entitySets.map(({ name }) => name),
  ]
}

/** Words of HTTP, MIME and OData, and those of the service's own error texts: they name nothing of a learner. */
const wireWords = `
  0 1 2 3 4 5 6 7 8 9 http https get head post put patch delete options version content type id length transfer encoding disposition
  accept charset 7bit 8bit prefer return representation minimal respond async binary application json xml text plain html multipart mixed form data
  boundary batch changeset response request batchresponse changesetresponse odata metadata full none streaming true false null ieee754compatible
  utf 8 iso 8859 us ascii latin1 q max maxversion msgtype host authorization cookie forwarded x for proto port allow language etag retry after
  v1 v2 v3 attendance attendancerecords attendanceservice models entity context count nextlink top skip filter expand select orderby search
  format skiptoken deltatoken asc desc and or not eq ne gt ge lt le in any all guid datetime datetimeoffset contains startswith endswith
  ok created accepted no bad unauthorized forbidden not found method allowed conflict gone too many requests internal server error
  unavailable gateway timeout service the does do exist is a an of be by may must was with to this record code event lookup learner
  identifier attendee session sequenceid invalid unknown missing required field value present absent
`

/** Words that stay in framing, addresses, names of types and error texts; lower case. */
export const knownWords: ReadonlySet<string> = new Set([
  ...wireWords.trim().split(/\s+/),
  ...Array.from(knownMembers, (name) => name.toLowerCase()),
])
