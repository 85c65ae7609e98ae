import type { ComplexType, EntityType, EnumType } from '../odata/csdl.ts'
import {
  bool,
  complex,
  datetimeoffset,
  entity,
  guid,
  required,
  string,
  strings,
  type Field,
} from './notation.ts'

/** `StartDate` and `EndDate`, the period that most records of the service have. */
export const period: Readonly<Record<'StartDate' | 'EndDate', Field>> = {
  StartDate: datetimeoffset,
  EndDate: datetimeoffset,
}

/** Declares `{ExternalID, Type}` (service.md 2.1). */
export const typedReference = (name: string): ComplexType =>
  complex(name, { ExternalID: required(guid), Type: string })

/** Declares an attachment: its note and the names of its files (service.md 2.1). */
export const attachment = (name: string): ComplexType =>
  complex(name, {
    Summary: string,
    Note: string,
    Confidential: bool,
    Attachments: strings,
    ExternalID: required(guid),
  })

/** Declares an entity with ExternalID and Type only (service.md 2.1). */
export const typedEntity = (name: string): EntityType => entity(name, { Type: string })

/** The complex types that several domains use. */
export const sharedComplexTypes: readonly ComplexType[] = [
  complex('CurrentGroupRef', { Description: string, ExternalID: required(guid), Type: string }),
  // The shape is assumed.
  complex('Address', {
    ExternalID: required(guid),
    BuildingName: string,
    BuildingNumber: string,
    Street: string,
    Locality: string,
    Town: string,
    County: string,
    PostCode: string,
    Country: string,
  }),
]

const enumeration = (name: string, members: readonly string[]): EnumType => ({
  name,
  members: members.map((member, value) => ({ name: member, value })),
})

/** The enumerations. Service.md 2.11 shows no values; service-facts 7 and 15 name some. */
export const enumTypes: readonly EnumType[] = [
  enumeration('GroupTypeEnum', ['YearGroup', 'PrimaryClass', 'House']),
  enumeration('LookupType', [
    'AttendanceCode',
    'Ethnicity',
    'Gender',
    'Language',
    'Religion',
    'SENNeedType',
    'SENProvisionType',
    'SENStatus',
    'SENReviewStatus',
    'SENReviewType',
    'Title',
  ]),
]
