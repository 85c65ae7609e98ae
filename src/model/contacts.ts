import type { EntityType } from '../odata/csdl.ts'
import {
  bool,
  collectionOf,
  contained,
  datetimeoffset,
  entity,
  int32,
  nav,
  ref,
  string,
  strings,
  type Field,
} from './notation.ts'
import { period } from './shared.ts'

/** The fields that LearnerContact and ContactBasic share (service.md 2.7). */
const basicFields: Readonly<Record<string, Field>> = {
  Forename: string,
  Surname: string,
  MiddleName: string,
  IsTranslatorRequired: bool,
  ParentalBallot: bool,
  Honours: string,
  Salutation: string,
  Addressee: string,
  PlaceOfWork: string,
  JobTitle: string,
  Title: ref('TitleRef'),
}

const noteFields: Readonly<Record<string, Field>> = {
  Summary: string,
  Note: string,
  Confidential: bool,
  Attachments: strings,
}

const relationshipFields = (typeName: string): Readonly<Record<string, Field>> => ({
  HasCourtOrder: bool,
  HasParentalResponsibility: bool,
  LearnerContactRelationshipType: ref(typeName),
  Priority: int32,
  ReceivesCorrespondance: bool,
  ReceivesSchoolReport: bool,
})

const learnerSide: readonly EntityType[] = [
  entity('LearnerContactBasic', {
    LearnerContactMatchResult: ref('LearnerContactMatchResult'),
    LearnerContacts: contained('LearnerContact'),
  }),
  entity('LearnerContact', {
    ...basicFields,
    HomeLanguage: ref('HomeLanguage'),
    Gender: ref('GenderRef'),
    Occupation: ref('OccupationRef'),
    Notes: collectionOf('Notes'),
  }),
  entity('LearnerContactContactDetails', { LearnerContacts: contained('LearnerContactContact') }),
  entity('LearnerContactContact', {
    Telephones: contained('TelephoneRef'),
    Emails: contained('EmailRef'),
    Addresses: contained('Addresses'),
  }),
  entity('LearnerContactDetails', {
    ParentalSalutation: string,
    ParentalAddressee: string,
    IsMailingPoint: bool,
    LearnerContactRelationships: nav('LearnerContactRelationship'),
    Addresses: nav('LearnerAddress'),
    Telephones: nav('TelephoneRef'),
    Emails: nav('EmailRef'),
  }),
  entity('LearnerContactRelationship', {
    ...relationshipFields('LearnerContactRelationshipTypeRef'),
    LearnerContact: ref('LearnerContactDetail'),
  }),
  entity('LearnerContactDtl', {}),
  entity('LearnerAddress', {
    ...period,
    Note: string,
    AddressType: ref('AddressTypeRef'),
    Address: ref('Address'),
  }),
  entity('LearnerContactPersonal', { DateOfBirth: datetimeoffset, NationalInsuranceNumber: string }),
  entity('LearnerGeneralNote', { Notes: nav('LearnerNote') }),
  entity('LearnerNote', noteFields),
]

const reachable: readonly EntityType[] = [
  entity('TelephoneRef', {
    TelephoneNumber: string,
    IsFirstPointOfContact: bool,
    UseForAutomatedMessages: bool,
    Notes: string,
    LocationType: ref('LocationTypeRef'),
  }),
  entity('EmailRef', {
    UseForAutomatedMessages: bool,
    Notes: string,
    IsMainEmail: bool,
    EmailAddress: string,
    LocationType: ref('EmailLocationTypeRef'),
  }),
  entity('Addresses', { ...period, Address: ref('Address'), AddressType: ref('ContactAddressTypeRef') }),
]

const contactSide: readonly EntityType[] = [
  entity('ContactBasic', {
    ...basicFields,
    HomeLanguage: ref('HomeLanguageRef'),
    Gender: ref('GenderRef'),
    Occupation: ref('OccupationReference'),
    Notes: nav('ContactNotes'),
  }),
  entity('ContactNotes', noteFields),
  entity('ContactNote', noteFields),
  entity('ContactContactDetails', {
    Salutation: string,
    Addressee: string,
    Telephones: nav('TelephoneRef'),
    Emails: nav('EmailRef'),
    Addresses: nav('ContactAddresses'),
    LearnerRelationships: nav('LearnerRelationship'),
  }),
  entity('ContactAddresses', {
    ...period,
    Address: ref('Address'),
    AddressType: ref('ContactAddressTypeRef'),
  }),
  entity('LearnerRelationship', {
    ...relationshipFields('ContactLearnerRelationshipTypeRef'),
    Learner: ref('LearnerDetail'),
  }),
  entity('Contact', {
    Forename: string,
    MiddleNames: string,
    Surname: string,
    Title: ref('TitleRef'),
    Gender: ref('GenderRef'),
  }),
  entity('ContactPersonal', {
    DateOfBirth: datetimeoffset,
    NationalInsuranceNumber: string,
    PlaceOfWork: string,
    JobTitle: string,
    Occupation: ref('OccupationReference'),
    HomeLanguage: ref('HomeLanguageRef'),
    Honours: string,
    IsTranslatorRequired: bool,
    ParentalBallot: bool,
    Notes: nav('ContactNote'),
  }),
]

/** The contacts and family of a learner, which are special category data (service.md 2.7). */
export const contactsEntityTypes: readonly EntityType[] = [...learnerSide, ...reachable, ...contactSide]
