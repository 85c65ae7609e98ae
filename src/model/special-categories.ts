import type { ComplexType, EntityType } from '../odata/csdl.ts'
import { bool, collectionOf, datetimeoffset, entity, nav, ref, string, strings } from './notation.ts'
import { attachment, period, typedEntity, typedReference } from './shared.ts'

/** The entity types of medical data, which is special category data (service.md 2.3). */
export const medicalEntityTypes: readonly EntityType[] = [
  entity('LearnerMedical', {
    NHSNumber: string,
    IsDisabled: bool,
    IsPregnant: bool,
    MedicalConditions: nav('LearnerMedicalCondition'),
    Disabilities: nav('LearnerDisability'),
    MedicalEvents: nav('LearnerMedicalEvent'),
    MedicalNotes: nav('LearnerMedicalNote'),
    LearnerParamedicalSupports: nav('LearnerParamedicalSupport'),
    MedicalProviders: nav('MedicalProviderRef'),
  }),
  entity('LearnerMedicalCondition', {
    InformationReceivedDate: datetimeoffset,
    EndDate: datetimeoffset,
    MedicalConditionNotes: collectionOf('LearnerMedicalConditionAttachment'),
    MedicalCondition: ref('MedicalConditionRef'),
    Summary: string,
  }),
  entity('LearnerDisability', { ...period, Notes: string, DisabilityType: ref('DisabilityTypeRef') }),
  entity('LearnerMedicalEvent', {
    EventDate: datetimeoffset,
    FollowUpDate: datetimeoffset,
    MedicalEventDescription: ref('MedicalEventDescriptionRef'),
    MedicalEventType: ref('MedicalEventTypeRef'),
    MedicalEventNotes: collectionOf('LearnerMedicalEventAttachment'),
  }),
  entity('LearnerMedicalNote', { Summary: string, Note: string, Confidential: bool, Attachments: strings }),
  entity('LearnerParamedicalSupport', { ParamedicalSupportType: ref('ParamedicalSupportTypeRef') }),
  typedEntity('MedicalProviderRef'),
]

export const medicalComplexTypes: readonly ComplexType[] = [
  typedReference('MedicalConditionRef'),
  typedReference('DisabilityTypeRef'),
  typedReference('MedicalEventDescriptionRef'),
  typedReference('MedicalEventTypeRef'),
  typedReference('ParamedicalSupportTypeRef'),
  attachment('LearnerMedicalConditionAttachment'),
  attachment('LearnerMedicalEventAttachment'),
]

/** The entity types of cultural data, which is special category data (service.md 2.5). */
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

/** The entity types of dietary data, which is special category data (service.md 2.6). */
export const dietaryEntityTypes: readonly EntityType[] = [
  entity('LearnerDietary', {
    DietaryNeeds: nav('DietaryNeedRef'),
    FreeMealEligibilityPeriods: nav('FreeMealEligibility'),
    MealPatterns: nav('MealPatterns'),
    FreeSchoolMilkEligibilityPeriods: nav('FreeSchoolMilkEligibility'),
  }),
  typedEntity('DietaryNeedRef'),
  entity('FreeMealEligibility', {
    ...period,
    ReviewDate: datetimeoffset,
    Notes: string,
    UKCountry: ref('UKCountryRef'),
    Protected: bool,
  }),
  entity('MealPatterns', { ...period, MealPatternDiningSessions: collectionOf('MealPatternDiningSession') }),
  entity('FreeSchoolMilkEligibility', { ...period }),
]
