import type { Identities } from '../identity.ts'
import type { Json } from '../json.ts'
import { hashName } from '../random.ts'

/** A value that a reference may point at. */
export interface ListedValue {
  readonly code: string
  readonly description: string
}

/** Values of the reference types of the model: names of types, then `CODE=Description`; the first value is the most common one. */
const lists = `
TitleRef: MR=Mr; MRS=Mrs; MS=Ms; MISS=Miss; DR=Dr
GenderRef: F=Female; M=Male
ResourceProviderRef: DFE=Department for Education; SCH=School
CareAuthorityRef: 301=Northshire; 302=Southshire; 303=Eastborough
ReasonForLeavingRef ReasonForLeavingRefObj: TRF=Transfer to another school; MOV=Moved away; END=End of phase
EnrolmentStatusRef EnrolmentStatusRefObj: C=Current (single registration); M=Main (dual registration); S=Subsidiary; G=Guest
ReasonForChangeRef: ADP=Adoption; MAR=Marriage of a parent; DEE=Deed poll
MedicalConditionRef: AST=Asthma; ECZ=Eczema; EPI=Epilepsy; DIA=Diabetes; NUT=Nut allergy; MIG=Migraine
DisabilityTypeRef: HEA=Hearing; VIS=Vision; MOB=Mobility; LEA=Learning; OTH=Other
MedicalEventDescriptionRef: ACC=Accident; VAC=Vaccination; CHK=Check-up; MED=Medicine given
MedicalEventTypeRef: FA=First aid; NUR=School nurse; HOS=Hospital
ParamedicalSupportTypeRef: SLT=Speech and language therapy; PHY=Physiotherapy; OT=Occupational therapy
MedicalProviderRef: MP1=Mill Lane Surgery; MP2=Park View Practice; MP3=Chapel Hill Health Centre
SENGroupingAndSupportRef: SG=Small group; 11=One to one; IC=In class
SENCurriculumAndTeachingMethodRef: DIF=Adapted curriculum; SPC=Specialist programme
SENAdviceAndAssessmentRef: EP=Educational psychologist; SLT=Speech therapist
SENNeedTypeRef: SLCN=Speech, language and communication; SPLD=Specific learning difficulty; ASD=Autistic spectrum
SENProvisionTypeRef: TA=Teaching assistant; SGT=Small group teaching; SPC=Specialist teaching
SENStatusRef: K=SEN support; E=Education, health and care plan; N=No special educational need
SENEventTypeRef: MTG=Meeting; OBS=Observation; ASM=Assessment
SENReviewStatus: PLN=Planned; HEL=Held; CAN=Cancelled
SENReviewType: ANN=Annual; INT=Interim; TRA=Transition
SENStatement: FIN=Final statement; DRA=Draft statement
Subject: MAT=Mathematics; ENG=English; SCI=Science; MUS=Music; PE=Physical education; ART=Art
Venue: OFF=School office; LIB=Library; R12=Room 12
EHCPAssessmentOutcomeRef: ISS=Plan issued; REF=Plan refused
EHCPAssessmentRequestStatusRef: ACC=Accepted; PEN=Pending; DEC=Declined
LAOfficer: LA1=Case officer, Northshire; LA2=Case officer, Southshire
CountryOfBirth CountryOfIssue: GBR=United Kingdom; POL=Poland; IND=India; PAK=Pakistan; NGA=Nigeria; ROU=Romania
NationalIdentifierRef: ENG=English; BRI=British; WAL=Welsh; SCO=Scottish; OTH=Other
EthnicityRef: WBRI=White, British; WOTH=White, other; APKN=Pakistani; AIND=Indian; BAFR=Black African; NOBT=Not obtained
ReligionRef: NO=No religion; CH=Christian; MU=Muslim; HI=Hindu; SI=Sikh; JE=Jewish; OT=Other
AsylumSeekerRef: N=No; Y=Yes; R=Refugee
EthnicDataSourceRef WelshDataSourceRef SourceOfInformation TravellerSourceRef ServiceChildSourceRef: P=Parent; S=School
TaughtWelshRef: N=Not taught; F=First language; S=Second language
SpeaksWelshWithSiblings SpeaksWelshWithParents SpeaksWelshAtHome SpeaksWelshRef: 1=Fluently; 2=Not fluently; 9=Not applicable
LanguageRef HomeLanguage HomeLanguageRef: ENG=English; PNJ=Panjabi; URD=Urdu; BNG=Bengali; POL=Polish; SOM=Somali
LanguageUseRef: F=First language; H=Home language; O=Other
LanguageProficiencyRef: A=New to English; B=Early acquisition; C=Developing; D=Competent; E=Fluent
LearnerNationalities: GB=British; PL=Polish; IN=Indian; PK=Pakistani; NG=Nigerian; RO=Romanian
TravellerAccommodationTypeRef: SIT=Site; HOU=Housed; ROA=Roadside
DietaryNeedRef: VEG=Vegetarian; HAL=Halal; KOS=Kosher; NUT=No nuts; GLU=No gluten; LAC=No lactose
UKCountryRef: ENG=England; WAL=Wales; SCO=Scotland; NIR=Northern Ireland
MealPatternDiningSession: MON=Monday lunch; TUE=Tuesday lunch; WED=Wednesday lunch; THU=Thursday lunch
OccupationRef OccupationReference: TEA=Teacher; NUR=Nurse; ENG=Engineer; RET=Retail; DRV=Driver; SLF=Self-employed
LocationTypeRef EmailLocationTypeRef: H=Home; W=Work; M=Mobile
ContactAddressTypeRef AddressTypeRef: HOM=Home; TMP=Temporary; POS=Postal
LearnerContactMatchResult: NEW=No match; SUR=Certain match; POS=Possible match
LearnerContactRelationshipTypeRef ContactLearnerRelationshipTypeRef: MTH=Mother; FTH=Father; STP=Step-parent; GRP=Grandparent
Post16SupportSchemeRef: BUR=Bursary; EMA=Education maintenance allowance
EarlyYearsPupilPremiumFundingBasisRef: EE=Economic; EO=Other; EB=Both
AcademicYear: 2025=2025/2026; 2024=2024/2025; 2023=2023/2024
ServiceChildrenRef YouthSupportService: N=No; Y=Yes; R=Refused
ConsentTypeRef: PHO=Photographs; VIS=Local visits; NET=Internet; MED=First aid
ConsentStatusRef: G=Given; R=Refused; P=Pending
GroundsForRemovalRef: 8A=Registered elsewhere; 8D=Moved out of reach
DestinationEstablishment School: 4001=Hillcrest Academy; 4002=Riverside School; 2105=Oakfield Primary
BoarderStatusRef: N=Not a boarder; B=Boarder
ModeOfTravelRef: WLK=Walk; CAR=Car; BUS=Public bus; SBD=Dedicated school bus; CYC=Cycle; TXI=Taxi
TravelRouteRef: R1=Route 1; R2=Route 2; R3=Route 3
RegisteredSureStartRef AttendedSureStartRef: Y=Yes; N=No; U=Not known
PreSchoolExperienceRef: NUR=Nursery; PLY=Playgroup; CHM=Childminder; NON=None
PersonalEducationPlanContributor: SW=Social worker; TEA=Class teacher; CAR=Carer
LearnerSENNeedTypeNote SENProvisionAttachment EHCPNote SENEventNote Notes PersonalEducationPlanDocument: NOTE=Discussed with the family
`

/** Values by the names of the types that refer to them. */
export const valueLists: ReadonlyMap<string, readonly [ListedValue, ...ListedValue[]]> = new Map(
  lists
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [types = '', text = ''] = line.split(': ')
      const [first, ...others] = text.split('; ').map((pair) => {
        const [code = '', description = ''] = pair.split('=')
        return { code, description }
      })
      if (first === undefined) return []
      return types.split(' ').map((type) => [type, [first, ...others] as const] as const)
    }),
)

/** Lists of the lookups of the learner and SEN areas, by entity set and LookupType. */
export const lookupSets: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  LearnerLookups: {
    Ethnicity: 'EthnicityRef',
    Gender: 'GenderRef',
    Language: 'LanguageRef',
    Religion: 'ReligionRef',
    Title: 'TitleRef',
  },
  LearnerSENLookps: {
    SENNeedType: 'SENNeedTypeRef',
    SENProvisionType: 'SENProvisionTypeRef',
    SENStatus: 'SENStatusRef',
    SENReviewStatus: 'SENReviewStatus',
    SENReviewType: 'SENReviewType',
  },
}

/** Fields of type guid that hold the id of a listed value. */
export const guidLists: Readonly<Record<string, string>> = {
  OutcomeSENStatus: 'SENStatusRef',
  ReviewStatus: 'SENReviewStatus',
  ReviewType: 'SENReviewType',
  VenueName: 'Venue',
}

/** The id of a listed value, the same wherever it is referred to. */
export function listedId(ids: Identities, list: string, code: string): string {
  return ids.guid('lookup', hashName(list), hashName(code))
}

/** Collections of which every owner has items, and how many at most; of the others one in five has one. */
export const usualItems: Readonly<Record<string, number>> = {
  ...{ MedicalProviders: 1, Enrolments: 1, EnrolmentStatuses: 1, Emails: 1, Addresses: 1 },
  ...{ LearnerLanguageDetails: 2, LearnerNationalities: 2, LearnerConsentTypes: 2, Telephones: 2 },
  ...{ MealPatternDiningSessions: 2, SENReviewParticipants: 2, AttendanceSummaries: 2 },
}

/** Values of fields by name, where nothing about the learner decides them: one of each list; null for fields that are not here. */
export const sampleValues: Readonly<Record<string, readonly [Json, ...Json[]]>> = {
  Summary: ['Noted by the school office', null],
  Note: ['See the paper file.\nKept up to date.', null],
  Notes: ['Agreed with the family', null],
  Comment: ['Going well', null],
  Comments: ['Going well', null],
  OutcomeComments: ['Targets were met', null],
  QuickNote: [null, null, 'Collect from the side gate'],
  Description: ['Support in class', null],
  LearningStrategies: [null, null, 'Visual timetable, short tasks'],
  Subjects: ['Mathematics; English'],
  EntityName: ['Staff'],
  JobTitle: ['Manager', null, null],
  PlaceOfWork: ['Town Hall', null, null],
  PlaceOfBirth: ['Markham'],
  Town: ['Markham'],
  County: ['Northshire'],
  Country: ['United Kingdom'],
  StartTime: ['PT14H'],
  EndTime: ['PT15H30M'],
  Year: ['2024/2025', '2023/2024'],
  PossibleSessions: [380],
  AttendanceSessions: [360],
  AuthorisedSessions: [15],
  UnauthorisedSessions: [5],
  TenantID: [1],
  Amount: [1455.5, 1320],
  BirthCertificateSeen: [true],
  HasParentalResponsibility: [true],
  ReceivesCorrespondance: [true],
  ReceivesSchoolReport: [true],
  IsMailingPoint: [true],
  ParentalBallot: [true],
  DeprivationPupil: [true],
  Invited: [true],
  Accepted: [true, false],
  Attended: [true, false],
  EnglishAsAdditional: [false, false, true],
  DateOfDeath: [null],
  DateCeased: [null],
}
