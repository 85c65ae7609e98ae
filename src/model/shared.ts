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

/** The fields `StartDate` and `EndDate`, which most entity types of the service have. */
export const period: Readonly<Record<'StartDate' | 'EndDate', Field>> = {
  StartDate: datetimeoffset,
  EndDate: datetimeoffset,
}

/** Declares a complex type with the fields ExternalID and Type (service.md 2.1). */
export const typedReference = (name: string): ComplexType =>
  complex(name, { ExternalID: required(guid), Type: string })

/** Declares a complex type for an attachment, with a note and the names of the files (service.md 2.1). */
export const attachment = (name: string): ComplexType =>
  complex(name, {
    Summary: string,
    Note: string,
    Confidential: bool,
    Attachments: strings,
    ExternalID: required(guid),
  })

/** Declares an entity type with the fields ExternalID and Type (service.md 2.1). */
export const typedEntity = (name: string): EntityType => entity(name, { Type: string })

export const sharedComplexTypes: readonly ComplexType[] = [
  complex('CurrentGroupRef', { Description: string, ExternalID: required(guid), Type: string }),
  // Service.md does not list the fields of an address, so they are assumed.
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

/**
 * The enumerations, whose members service.md 2.11 does not list. Some members come from service-facts 7 and 15, and the others are assumed.
 */
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
