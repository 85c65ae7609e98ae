/**
 * The fields of service.md 2.1 to 2.10 in the notation of that page, with the additions of service-facts 7 and 17. Where the page says "as"
 * or "same fields", the fields are written out. Each navigation property is marked `nav`. Commas separate types with the same fields. An
 * indented line continues the line above.
 */
export const documentedFields = `
CurrentGroupRef: Description string; ExternalID guid (required); Type string
MedicalConditionRef, DisabilityTypeRef, MedicalEventDescriptionRef, MedicalEventTypeRef,
  ParamedicalSupportTypeRef, SENGroupingAndSupportRef, SENCurriculumAndTeachingMethodRef,
  SENAdviceAndAssessmentRef: ExternalID guid (required); Type string
LearnerMedicalConditionAttachment, LearnerMedicalEventAttachment: Summary string; Note string; Confidential
  bool; Attachments [string]; ExternalID guid (required)
MedicalProviderRef, LearnerNationalities, DietaryNeedRef: ExternalID guid (required); Type string
LearnerIdentifier: ExternalID guid (required); Forename string; Surname string; GenderCategory string;
  AgeMonths int32; DoNotCommunicate bool; CurrentYearGroup CurrentGroupRef; CurrentPrimaryClass
  CurrentGroupRef; CurrentHouse CurrentGroupRef; OnRollState string; DateOfApplication datetimeoffset;
  Photograph string
LearnerGroup: ExternalID guid (required); GroupType GroupTypeEnum (required); ShortName string; FullName
  string; DisplayOrder int32 (required); nav LearnerIdentifiers [LearnerIdentifier]; nav LearnerMedicals
  [LearnerMedical]; nav LearnerSENs [LearnerSEN]; nav LearnerDietarys [LearnerDietary]; nav LearnerCulturals
  [LearnerCultural]; nav LearnerPersonals [LearnerPersonal]; nav LearnerContactBasics [LearnerContactBasic];
  nav LearnerContactContactDetails [LearnerContactContactDetails]; nav LearnerContactDetails
  [LearnerContactDetails]; nav LearnerGrants [LearnerGrant]; nav LearnerWelfares [LearnerWelfare]; nav
  LearnerConsents [LearnerConsent]; nav LearnerSENReviews [LearnerSENReview]; nav LearnerRegistrations
  [LearnerRegistration]; nav LearnerTransports [LearnerTransport]; nav LearnerPupilPremiumAwards
  [LearnerPupilPremiumAwards]; nav LearnerSchoolHistorys [LearnerSchoolHistory]; nav LearnerEHCPs
  [LearnerEHCP]; nav LearnerContactPersonals [LearnerContactPersonal]; nav LearnerSENEvents
  [LearnerSENEvent]; nav LearnerSENStatements [LearnerSENStatement]; nav ContactBasics [ContactBasic]
LearnerLookup, LearnerSENLookup: ExternalID guid (required); LookupType LookupType (required);
  ResourceProvider ResourceProviderRef; Code string; Description string; DisplayOrder int32 (required);
  IsVisible bool
LearnerPersonal: ExternalID guid (required); PreferredForename, PreferredSurname, LegalForename,
  LegalMiddleNames, LegalSurname string; DateOfBirth, DateOfDeath datetimeoffset; QuickNote string;
  BirthCertificateSeen bool; Title TitleRef; Gender GenderRef; Photograph string; nav PreviousNames
  [PreviousName]; GenderCategory string
PreviousName: ExternalID guid (required); DateChanged datetimeoffset; LegalForename, LegalMiddleNames,
  LegalSurname string; ReasonForChange ReasonForChangeRef
LearnerMedical: ExternalID guid (required); NHSNumber string; IsDisabled bool; IsPregnant bool; nav
  MedicalConditions [LearnerMedicalCondition]; nav Disabilities [LearnerDisability]; nav MedicalEvents
  [LearnerMedicalEvent]; nav MedicalNotes [LearnerMedicalNote]; nav LearnerParamedicalSupports
  [LearnerParamedicalSupport]; nav MedicalProviders [MedicalProviderRef]
LearnerMedicalCondition: ExternalID guid (required); InformationReceivedDate, EndDate datetimeoffset;
  MedicalConditionNotes [LearnerMedicalConditionAttachment]; MedicalCondition MedicalConditionRef; Summary
  string
LearnerDisability: ExternalID guid (required); StartDate, EndDate datetimeoffset; Notes string;
  DisabilityType DisabilityTypeRef
LearnerMedicalEvent: ExternalID guid (required); EventDate, FollowUpDate datetimeoffset;
  MedicalEventDescription MedicalEventDescriptionRef; MedicalEventType MedicalEventTypeRef;
  MedicalEventNotes [LearnerMedicalEventAttachment]
LearnerMedicalNote: ExternalID guid (required); Summary, Note string; Confidential bool; Attachments
  [string]
LearnerParamedicalSupport: ExternalID guid (required); ParamedicalSupportType ParamedicalSupportTypeRef
LearnerSEN: ExternalID guid (required); LearningStrategies string; SENGroupingAndSupport
  SENGroupingAndSupportRef; SENCurriculumAndTeachingMethod SENCurriculumAndTeachingMethodRef;
  SENAdviceAndAssessment SENAdviceAndAssessmentRef; nav SENNeeds [LearnerSENNeedTypes]; nav SENProvisions
  [LearnerSENProvisionType]; nav SENStatuses [LearnerSENStatus]; nav MostAbleSubjects [LearnerMostAble]
LearnerSENNeedTypes: ExternalID guid (required); Notes [LearnerSENNeedTypeNote]; SENNeedType SENNeedTypeRef;
  StartDate, EndDate datetimeoffset; Description string; Rank int32
LearnerSENProvisionType: ExternalID guid (required); StartDate, EndDate datetimeoffset; Comment string;
  Notes [SENProvisionAttachment]; SENProvisionType SENProvisionTypeRef
LearnerSENStatus: ExternalID guid (required); StartDate, EndDate datetimeoffset; SENStatus SENStatusRef
LearnerMostAble: ExternalID guid (required); FromDate, ToDate datetimeoffset; Notes string; Subject Subject
LearnerSENReview: ExternalID guid (required); nav LearnerSENReviews [LearnerSENReviewDetail] (contained)
LearnerSENReviewDetail: ExternalID guid (required); VenueName guid; LearnerConsultationDate,
  ParentsConsultationDate datetimeoffset; OutcomeSENStatus guid; OutcomeComments string; ReviewStatus guid;
  ReviewType guid; StartDate datetimeoffset; StartTime duration; Venues Venue; nav SENReviewParticipants
  [SENReviewParticipant] (contained)
SENReviewParticipant: ExternalID guid (required); Accepted, Attended, Invited bool; LearnerPersonInvolved
  guid; SenPeopleInvolvedRelationship guid; Date datetimeoffset; LearnerPersonInvolvedInfo
  LearnerPersonInvolved; nav SENPeopleInvolvedRelationship SENPeopleInvolvedRelationship
SENPeopleInvolvedRelationship: ExternalID guid (required); TenantID int32 (required); RoleID guid; Code,
  Description, EntityName string
LearnerEHCP: ExternalID guid (required); nav EHCPs [EHCP] (contained)
EHCP: ExternalID guid (required); DateRequestedforAssessment, ParentConsultationDate datetimeoffset;
  Subjects string; SubjectToAppealTribunal bool; AppealNotes string; DateFinalised, DateCeased
  datetimeoffset; Comments string; UndergoingSenMediation bool; Learner Learner; EHCPAssessmentOutcome
  EHCPAssessmentOutcomeRef; EHCPAssessmentRequestStatus EHCPAssessmentRequestStatusRef; LAOfficer LAOfficer;
  Notes [EHCPNote]
LearnerSENEvent: ExternalID guid (required); nav SENEvent [SENEvent]
SENEvent: ExternalID guid (required); Description string; StartDate, EndDate datetimeoffset; StartTime,
  EndTime duration; Notes [SENEventNote]; SENEventType SENEventTypeRef
LearnerSENStatement: ExternalID guid (required); SENStatement [SENStatement]
LearnerCultural: ExternalID guid (required); DateOfEntryIntoEWBES datetimeoffset;
  PreviouslyEducatedInNEWBES, IsTaughtThroughIrishMedium, EnglishAsAdditional bool; CountryOfBirth
  CountryOfBirth; Ethnicity EthnicityRef; EthnicDataSource EthnicDataSourceRef; Religion ReligionRef;
  AsylumSeeker AsylumSeekerRef; WelshDataSource WelshDataSourceRef; TaughtWelsh TaughtWelshRef;
  SpeaksWelshWithSiblings SpeaksWelshWithSiblings; SpeaksWelshWithParents SpeaksWelshWithParents;
  SpeaksWelshAtHome SpeaksWelshAtHome; SpeaksWelsh SpeaksWelshRef; NationalIdentifier NationalIdentifierRef;
  nav LearnerLanguageDetails [LearnerLanguageDetail]; nav LearnerTravellerDetails [LearnerTravellerDetail];
  nav LearnerNationalities [LearnerNationalities]; nav NationalLanguageProficiencyTests
  [LearnerProficiencyInNationalLanguage]; nav LearnerPassportDetails [LearnerPassportDetail]; nav
  NewcomerPeriods [LearnerNewcomerPeriod]
LearnerLanguageDetail: ExternalID guid (required); Language LanguageRef; LanguageUse LanguageUseRef;
  SourceOfInformation SourceOfInformation
LearnerTravellerDetail: ExternalID guid (required); StartDate, EndDate datetimeoffset;
  TravellerAccommodationType TravellerAccommodationTypeRef; TravellerSource TravellerSourceRef
LearnerProficiencyInNationalLanguage: ExternalID guid (required); DateAssessed datetimeoffset;
  LanguageProficiency LanguageProficiencyRef
LearnerPassportDetail: ExternalID guid (required); PassportNumber, NameOnPassport string; IssueDate,
  ExpiryDate datetimeoffset; PassportSeen, HasBeenScanned bool; PlaceOfBirth string; CountryOfIssue
  CountryOfIssue
LearnerNewcomerPeriod: ExternalID guid (required); StartDate, EndDate datetimeoffset
LearnerDietary: ExternalID guid (required); nav DietaryNeeds [DietaryNeedRef]; nav
  FreeMealEligibilityPeriods [FreeMealEligibility]; nav MealPatterns [MealPatterns]; nav
  FreeSchoolMilkEligibilityPeriods [FreeSchoolMilkEligibility]
FreeMealEligibility: ExternalID guid (required); StartDate, EndDate, ReviewDate datetimeoffset; Notes
  string; UKCountry UKCountryRef; Protected bool
MealPatterns: ExternalID guid (required); StartDate, EndDate datetimeoffset; MealPatternDiningSessions
  [MealPatternDiningSession]
FreeSchoolMilkEligibility: ExternalID guid (required); StartDate, EndDate datetimeoffset
LearnerContactBasic: ExternalID guid (required); LearnerContactMatchResult LearnerContactMatchResult; nav
  LearnerContacts [LearnerContact] (contained)
LearnerContact: ExternalID guid (required); Forename, Surname, MiddleName string; IsTranslatorRequired,
  ParentalBallot bool; Honours, Salutation, Addressee, PlaceOfWork, JobTitle string; Title TitleRef;
  HomeLanguage HomeLanguage; Gender GenderRef; Occupation OccupationRef; Notes [Notes]
LearnerContactContactDetails: ExternalID guid (required); nav LearnerContacts [LearnerContactContact]
  (contained)
LearnerContactContact: ExternalID guid (required); nav Telephones [TelephoneRef] (contained); nav Emails
  [EmailRef] (contained); nav Addresses [Addresses] (contained)
TelephoneRef: ExternalID guid (required); TelephoneNumber string; IsFirstPointOfContact,
  UseForAutomatedMessages bool; Notes string; LocationType LocationTypeRef
EmailRef: ExternalID guid (required); UseForAutomatedMessages bool; Notes string; IsMainEmail bool;
  EmailAddress string; LocationType EmailLocationTypeRef
Addresses: ExternalID guid (required); StartDate, EndDate datetimeoffset; Address Address; AddressType
  ContactAddressTypeRef
LearnerContactDetails: ExternalID guid (required); ParentalSalutation, ParentalAddressee string;
  IsMailingPoint bool; nav LearnerContactRelationships [LearnerContactRelationship]; nav Addresses
  [LearnerAddress]; nav Telephones [TelephoneRef]; nav Emails [EmailRef]
LearnerContactRelationship: ExternalID guid (required); HasCourtOrder, HasParentalResponsibility bool;
  LearnerContactRelationshipType LearnerContactRelationshipTypeRef; Priority int32; ReceivesCorrespondance,
  ReceivesSchoolReport bool; LearnerContact LearnerContactDetail
LearnerContactDtl: ExternalID guid (required)
LearnerAddress: ExternalID guid (required); StartDate, EndDate datetimeoffset; Note string; AddressType
  AddressTypeRef; Address Address
LearnerContactPersonal: ExternalID guid (required); DateOfBirth datetimeoffset; NationalInsuranceNumber
  string
ContactBasic: ExternalID guid (required); Forename, Surname, MiddleName string; IsTranslatorRequired,
  ParentalBallot bool; Honours, Salutation, Addressee, PlaceOfWork, JobTitle string; Title TitleRef;
  HomeLanguage HomeLanguageRef; Gender GenderRef; Occupation OccupationReference; nav Notes [ContactNotes]
ContactNotes, ContactNote, LearnerNote: ExternalID guid (required); Summary, Note string; Confidential bool;
  Attachments [string]
LearnerGeneralNote: ExternalID guid (required); nav Notes [LearnerNote]
ContactContactDetails: ExternalID guid (required); Salutation, Addressee string; nav Telephones
  [TelephoneRef]; nav Emails [EmailRef]; nav Addresses [ContactAddresses]; nav LearnerRelationships
  [LearnerRelationship]
ContactAddresses: ExternalID guid (required); StartDate, EndDate datetimeoffset; Address Address;
  AddressType ContactAddressTypeRef
LearnerRelationship: ExternalID guid (required); HasCourtOrder, HasParentalResponsibility bool;
  LearnerContactRelationshipType ContactLearnerRelationshipTypeRef; Priority int32; ReceivesCorrespondance,
  ReceivesSchoolReport bool; Learner LearnerDetail
Contact: ExternalID guid (required); Forename, MiddleNames, Surname string; Title TitleRef; Gender GenderRef
ContactPersonal: ExternalID guid (required); DateOfBirth datetimeoffset; NationalInsuranceNumber,
  PlaceOfWork, JobTitle string; Occupation OccupationReference; HomeLanguage HomeLanguageRef; Honours
  string; IsTranslatorRequired, ParentalBallot bool; nav Notes [ContactNote]
LearnerGrant: ExternalID guid (required); JobseekersAllowance, UniformAllowance, DisabilityAccessFund bool;
  nav Post16SupportSchemeAwards [Post16SupportSchemeAward]; nav HighNeedsFundingPeriods
  [HighNeedsFundingPeriod]; nav FundedChildCare [FundedChildCares]; nav EarlyYearsPupilPremiumEligibilitys
  [EarlyYearsPupilPremiumEligibility]; nav PupilPremiumEligibilitys [PupilPremiumEligibility]; nav
  LearnerUniformGrantEligibilitys [LearnerUniformGrantEligibility]; nav LearnerZeroRatedFundings
  [LearnerZeroRatedFunding]
Post16SupportSchemeAward: ExternalID guid (required); DateAwarded string; Note string; Post16SupportScheme
  Post16SupportSchemeRef
HighNeedsFundingPeriod: ExternalID guid (required); StartDate, EndDate datetimeoffset; Notes string
FundedChildCares: ExternalID guid (required); StartDate, EndDate datetimeoffset; CodeNumber, Notes string
EarlyYearsPupilPremiumEligibility: ExternalID guid (required); StartDate, EndDate datetimeoffset; Notes
  string; EarlyYearsPupilPremiumFundingBasis EarlyYearsPupilPremiumFundingBasisRef
PupilPremiumEligibility: ExternalID guid (required); StartDate, EndDate datetimeoffset; Note string
LearnerUniformGrantEligibility: ExternalID guid (required); StartDate, EndDate datetimeoffset; Notes string
LearnerZeroRatedFunding: ExternalID guid (required); Note string; AcademicYear AcademicYear
LearnerWelfare: ExternalID guid (required); ServiceChild ServiceChildrenRef; ServiceChildSource
  ServiceChildSourceRef; nav IncareDetails [LearnerInCareDetail]; nav PersonalEducationPlans
  [PersonalEducationPlan]; nav YoungCarerPeriods [LearnerYoungCarer]; nav ChildProtectionPlans
  [LearnerChildProtectionPlan]
LearnerInCareDetail: ExternalID guid (required); StartDate, EndDate datetimeoffset; CareAuthority
  CareAuthorityRef
PersonalEducationPlan: ExternalID guid (required); StartDate, EndDate datetimeoffset; InCareDetail guid;
  PersonalEducationPlanContributors [PersonalEducationPlanContributor]; Notes
  [PersonalEducationPlanDocument]
LearnerYoungCarer: ExternalID guid (required); StartDate, EndDate datetimeoffset; Notes string
LearnerChildProtectionPlan: ExternalID guid (required); StartDate, EndDate datetimeoffset; Notes string;
  CareAuthority CareAuthorityRef
LearnerConsent: ExternalID guid (required); YouthSupportServicesAgreement YouthSupportService; nav
  LearnerConsentTypes [LearnerConsentType]
LearnerConsentType: ExternalID guid (required); ConsentDate datetimeoffset; ConsentingAdult, Notes string;
  ConsentType ConsentTypeRef; ConsentStatus ConsentStatusRef
LearnerPupilPremiumAwards: ExternalID guid (required); nav PupilPremiumAwards [PupilPremiumAwards]
PupilPremiumAwards: ExternalID guid (required); StartDate, EndDate datetimeoffset; Amount decimal;
  DeprivationPupil, LookedAfter, EarlyYears, FullTimeEquivalent, AdoptedFromCare, ServicePupil bool; LastFSM
  string
LearnerRegistration: ExternalID guid (required); AdmissionNumber, UniquePupilNumber, UniqueLearnerNumber,
  LocalUPN string; IsEducatedAtAnotherSiteButNotInASchool bool; nav Enrolments [LearnerEnrolment]; nav
  BoarderStatuses [LearnerBoarderStatus]; nav PartTimeRecords [LearnerPartTimeRecord]; nav UPNHistory
  [LearnerUPNHistory]
LearnerEnrolment: ExternalID guid (required); DateOfAdmission datetimeoffset; DateOfLeaviing datetimeoffset;
  Destination string; DestinationStartDate datetimeoffset; ReasonForLeaving ReasonForLeavingRef;
  GroundsForRemoval GroundsForRemovalRef; DestinationEstablishment DestinationEstablishment; nav
  EnrolmentStatuses [LearnerEnrolmentStatus] (contained)
LearnerEnrolmentStatus: ExternalID guid (required); StartDate, EndDate datetimeoffset; EnrolmentStatus
  EnrolmentStatusRefObj
LearnerBoarderStatus: ExternalID guid (required); BoarderStatus BoarderStatusRef; StartDate, EndDate
  datetimeoffset
LearnerPartTimeRecord: ExternalID guid (required); StartDate, EndDate datetimeoffset
LearnerUPNHistory: ExternalID guid (required); UniquePupilNumber string; EndDate datetimeoffset
LearnerTransport: ExternalID guid (required); ModeOfTravel ModeOfTravelRef; TravelRoute TravelRouteRef;
  LAProvidesTransport bool
LearnerSchoolHistory: ExternalID guid (required); RegisteredSureStart RegisteredSureStartRef;
  AttendedSureStart AttendedSureStartRef; PreSchoolExperience PreSchoolExperienceRef; nav PreviousSchools
  [PreviousSchool]
PreviousSchool: ExternalID guid (required); StartDate, EndDate datetimeoffset; EnrolmentStatus
  EnrolmentStatusRef; ReasonForLeaving ReasonForLeavingRefObj; School School; nav AttendanceSummaries
  [AttendanceSummary]
AttendanceSummary: ExternalID guid (required); PossibleSessions, AttendanceSessions, AuthorisedSessions,
  UnauthorisedSessions int32; Year string
AttendanceRecord: ExternalID guid (required); Present, Absent bool; RecordedOn datetimeoffset;
  ChangeProcessName string; AttendableEventStart datetimeoffset; RecordedBy RecordedByRef; Attendee
  AttendeeRef; Event EventRef; AttendanceCode AttendanceCodeRef; Qualifier Qualifier; fabricated string
RecordedByRef, AttendeeRef, EventRef, AttendanceCodeRef: ExternalID guid (required); Type string
Qualifier: MinutesLate int32; Comment string
AttendanceLookup: ExternalID guid (required); LookupType LookupType (required); ResourceProvider
  ResourceProviderRef; Code string; Description string; DisplayOrder int32 (required); IsVisible bool;
  StatutoryAttendanceCode StatutoryAttendanceCodeRef
`
