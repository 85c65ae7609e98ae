import type { EntityType } from '../odata/csdl.ts'
import {
  bool,
  datetimeoffset,
  entity,
  guid,
  int32,
  keyedEntity,
  nav,
  ref,
  required,
  string,
  type Field,
} from './notation.ts'

/** A row in the list of learners, which is read-only (service.md 2.2). */
const learnerIdentifier: EntityType = entity('LearnerIdentifier', {
  Forename: string,
  Surname: string,
  GenderCategory: string,
  AgeMonths: int32,
  DoNotCommunicate: bool,
  CurrentYearGroup: ref('CurrentGroupRef'),
  CurrentPrimaryClass: ref('CurrentGroupRef'),
  CurrentHouse: ref('CurrentGroupRef'),
  OnRollState: string,
  DateOfApplication: datetimeoffset,
  Photograph: string,
})

/** A group of learners, such as a class. Its links lead to all data of its members (service.md 2.2, service-facts 15). */
const learnerGroup: EntityType = keyedEntity('LearnerGroup', ['ExternalID', 'GroupType'], {
  ExternalID: required(guid),
  GroupType: required(ref('GroupTypeEnum')),
  ShortName: string,
  FullName: string,
  DisplayOrder: required(int32),
  LearnerIdentifiers: nav('LearnerIdentifier'),
  LearnerMedicals: nav('LearnerMedical'),
  LearnerSENs: nav('LearnerSEN'),
  LearnerDietarys: nav('LearnerDietary'),
  LearnerCulturals: nav('LearnerCultural'),
  LearnerPersonals: nav('LearnerPersonal'),
  LearnerContactBasics: nav('LearnerContactBasic'),
  LearnerContactContactDetails: nav('LearnerContactContactDetails'),
  LearnerContactDetails: nav('LearnerContactDetails'),
  LearnerGrants: nav('LearnerGrant'),
  LearnerWelfares: nav('LearnerWelfare'),
  LearnerConsents: nav('LearnerConsent'),
  LearnerSENReviews: nav('LearnerSENReview'),
  LearnerRegistrations: nav('LearnerRegistration'),
  LearnerTransports: nav('LearnerTransport'),
  LearnerPupilPremiumAwards: nav('LearnerPupilPremiumAwards'),
  LearnerSchoolHistorys: nav('LearnerSchoolHistory'),
  LearnerEHCPs: nav('LearnerEHCP'),
  LearnerContactPersonals: nav('LearnerContactPersonal'),
  LearnerSENEvents: nav('LearnerSENEvent'),
  LearnerSENStatements: nav('LearnerSENStatement'),
  ContactBasics: nav('ContactBasic'),
})

const lookupFields: Readonly<Record<string, Field>> = {
  ExternalID: required(guid),
  LookupType: required(ref('LookupType')),
  ResourceProvider: ref('ResourceProviderRef'),
  Code: string,
  Description: string,
  DisplayOrder: required(int32),
  IsVisible: bool,
}

/** Declares an entity type for lookup values, with `extra` fields after the common fields (service.md 2.2, service-facts 7). */
export const lookup = (name: string, extra: Readonly<Record<string, Field>> = {}): EntityType =>
  keyedEntity(name, ['ExternalID', 'LookupType'], { ...lookupFields, ...extra })

/** Basic personal data of current, past and future learners (service.md 2.2, service-facts 16 and 17). */
export const learnerPersonal: EntityType = entity('LearnerPersonal', {
  PreferredForename: string,
  PreferredSurname: string,
  LegalForename: string,
  LegalMiddleNames: string,
  LegalSurname: string,
  DateOfBirth: datetimeoffset,
  DateOfDeath: datetimeoffset,
  QuickNote: string,
  BirthCertificateSeen: bool,
  Title: ref('TitleRef'),
  Gender: ref('GenderRef'),
  GenderCategory: string,
  Photograph: string,
  PreviousNames: nav('PreviousName'),
})

const previousName = entity('PreviousName', {
  DateChanged: datetimeoffset,
  LegalForename: string,
  LegalMiddleNames: string,
  LegalSurname: string,
  ReasonForChange: ref('ReasonForChangeRef'),
})

export const identityEntityTypes: readonly EntityType[] = [
  learnerIdentifier,
  learnerGroup,
  lookup('LearnerLookup'),
  lookup('LearnerSENLookup'),
  learnerPersonal,
  previousName,
]
