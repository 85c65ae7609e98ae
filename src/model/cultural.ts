import type { EntityType } from '../odata/csdl.ts'
import { bool, datetimeoffset, entity, nav, ref, string } from './notation.ts'
import { period, typedEntity } from './shared.ts'

/** Cultural domain, special category data (service.md 2.5). */
export const culturalEntityTypes: readonly EntityType[] = [
  entity('LearnerCultural', {
    DateOfEntryIntoEWBES: datetimeoffset,
    PreviouslyEducatedInNEWBES: bool,
    IsTaughtThroughIrishMedium: bool,
    EnglishAsAdditional: bool,
    CountryOfBirth: ref('CountryOfBirth'),
    Ethnicity: ref('EthnicityRef'),
    EthnicDataSource: ref('EthnicDataSourceRef'),
    Religion: ref('ReligionRef'),
    AsylumSeeker: ref('AsylumSeekerRef'),
    WelshDataSource: ref('WelshDataSourceRef'),
    TaughtWelsh: ref('TaughtWelshRef'),
    SpeaksWelshWithSiblings: ref('SpeaksWelshWithSiblings'),
    SpeaksWelshWithParents: ref('SpeaksWelshWithParents'),
    SpeaksWelshAtHome: ref('SpeaksWelshAtHome'),
    SpeaksWelsh: ref('SpeaksWelshRef'),
    NationalIdentifier: ref('NationalIdentifierRef'),
    LearnerLanguageDetails: nav('LearnerLanguageDetail'),
    LearnerTravellerDetails: nav('LearnerTravellerDetail'),
    LearnerNationalities: nav('LearnerNationalities'),
    NationalLanguageProficiencyTests: nav('LearnerProficiencyInNationalLanguage'),
    LearnerPassportDetails: nav('LearnerPassportDetail'),
    NewcomerPeriods: nav('LearnerNewcomerPeriod'),
  }),
  entity('LearnerLanguageDetail', {
    Language: ref('LanguageRef'),
    LanguageUse: ref('LanguageUseRef'),
    SourceOfInformation: ref('SourceOfInformation'),
  }),
  entity('LearnerTravellerDetail', {
    ...period,
    TravellerAccommodationType: ref('TravellerAccommodationTypeRef'),
    TravellerSource: ref('TravellerSourceRef'),
  }),
  typedEntity('LearnerNationalities'),
  entity('LearnerProficiencyInNationalLanguage', {
    DateAssessed: datetimeoffset,
    LanguageProficiency: ref('LanguageProficiencyRef'),
  }),
  entity('LearnerPassportDetail', {
    PassportNumber: string,
    NameOnPassport: string,
    IssueDate: datetimeoffset,
    ExpiryDate: datetimeoffset,
    PassportSeen: bool,
    HasBeenScanned: bool,
    PlaceOfBirth: string,
    CountryOfIssue: ref('CountryOfIssue'),
  }),
  entity('LearnerNewcomerPeriod', { ...period }),
]
