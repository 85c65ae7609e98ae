import type { Identities } from '../../identity.ts'
import { hashName } from '../../random.ts'

/** A value that a reference may point at. */
export interface ListedValue {
  readonly code: string
  readonly description: string
}

type Lists = Readonly<Record<string, readonly ListedValue[]>>

/** Reads `CODE=Description; CODE=Description`. */
function values(text: string): readonly ListedValue[] {
  return text.split(';').map((pair) => {
    const [code = '', description = ''] = pair.split('=').map((part) => part.trim())
    return { code, description }
  })
}

const languages = values(
  'ENG=English; PNJ=Panjabi; URD=Urdu; BNG=Bengali; POL=Polish; ARA=Arabic; SOM=Somali; POR=Portuguese',
)
const countries = values('GBR=United Kingdom; POL=Poland; IND=India; PAK=Pakistan; NGA=Nigeria; ROU=Romania')
const welsh = values('1=Fluently; 2=Not fluently; 3=Cannot speak Welsh; 9=Not applicable')
const leaving = values('TRF=Transfer to another school; MOV=Moved away; END=End of phase')
const statuses = values('C=Current (single registration); M=Main (dual registration); S=Subsidiary; G=Guest')
const authorities = values('301=Northshire; 302=Southshire; 303=Eastborough')
const occupations = values('TEA=Teacher; NUR=Nurse; ENG=Engineer; RET=Retail; DRV=Driver; SLF=Self-employed')
const locations = values('H=Home; W=Work; M=Mobile')
const addressTypes = values('HOM=Home; TMP=Temporary; POS=Postal')
const relationships = values('MTH=Mother; FTH=Father; STP=Step-parent; GRP=Grandparent; CRM=Childminder')
const sureStart = values('Y=Yes; N=No; U=Not known')
const notes = values('NOTE=Discussed with the family; MEET=Minutes of the meeting; DOC=Document received')

/** Values of the reference types of the model, by type name; the first of a list is the most common one. */
export const valueLists: Lists = {
  TitleRef: values('MR=Mr; MRS=Mrs; MS=Ms; MISS=Miss; DR=Dr'),
  GenderRef: values('F=Female; M=Male'),
  ResourceProviderRef: values('DFE=Department for Education; SCH=School'),
  CareAuthorityRef: authorities,
  ReasonForLeavingRef: leaving,
  ReasonForLeavingRefObj: leaving,
  EnrolmentStatusRef: statuses,
  EnrolmentStatusRefObj: statuses,
  ReasonForChangeRef: values('ADP=Adoption; MAR=Marriage of a parent; DEE=Deed poll'),
  MedicalConditionRef: values(
    'AST=Asthma; ECZ=Eczema; EPI=Epilepsy; DIA=Diabetes; NUT=Nut allergy; MIG=Migraine',
  ),
  DisabilityTypeRef: values('HEA=Hearing; VIS=Vision; MOB=Mobility; LEA=Learning; OTH=Other'),
  MedicalEventDescriptionRef: values('ACC=Accident; VAC=Vaccination; CHK=Check-up; MED=Medicine given'),
  MedicalEventTypeRef: values('FA=First aid; NUR=School nurse; HOS=Hospital'),
  ParamedicalSupportTypeRef: values(
    'SLT=Speech and language therapy; PHY=Physiotherapy; OT=Occupational therapy',
  ),
  MedicalProviderRef: values('MP1=Mill Lane Surgery; MP2=Park View Practice; MP3=Chapel Hill Health Centre'),
  SENGroupingAndSupportRef: values('SG=Small group; 11=One to one; IC=In class'),
  SENCurriculumAndTeachingMethodRef: values('DIF=Adapted curriculum; SPC=Specialist programme'),
  SENAdviceAndAssessmentRef: values('EP=Educational psychologist; SLT=Speech therapist'),
  SENNeedTypeRef: values(
    'SLCN=Speech, language and communication; SPLD=Specific learning difficulty; SEMH=Social, emotional and mental health; ASD=Autistic spectrum; MLD=Moderate learning difficulty; HI=Hearing impairment',
  ),
  SENProvisionTypeRef: values('TA=Teaching assistant; SGT=Small group teaching; SPC=Specialist teaching'),
  SENStatusRef: values('K=SEN support; E=Education, health and care plan; N=No special educational need'),
  SENEventTypeRef: values('MTG=Meeting; OBS=Observation; ASM=Assessment'),
  Subject: values('MAT=Mathematics; ENG=English; SCI=Science; MUS=Music; PE=Physical education; ART=Art'),
  Venue: values('OFF=School office; LIB=Library; R12=Room 12'),
  EHCPAssessmentOutcomeRef: values('ISS=Plan issued; REF=Plan refused'),
  EHCPAssessmentRequestStatusRef: values('ACC=Accepted; PEN=Pending; DEC=Declined'),
  LAOfficer: values('LA1=Case officer, Northshire; LA2=Case officer, Southshire'),
  CountryOfBirth: countries,
  CountryOfIssue: countries,
  NationalIdentifierRef: values('ENG=English; BRI=British; WAL=Welsh; SCO=Scottish; OTH=Other'),
  EthnicityRef: values(
    'WBRI=White, British; WOTH=White, other; APKN=Pakistani; AIND=Indian; ABAN=Bangladeshi; BAFR=Black African; MWBC=White and Black Caribbean; CHNE=Chinese; NOBT=Not obtained; REFU=Refused',
  ),
  EthnicDataSourceRef: values('P=Parent; C=Child; S=School; O=Other'),
  ReligionRef: values('NO=No religion; CH=Christian; MU=Muslim; HI=Hindu; SI=Sikh; JE=Jewish; OT=Other'),
  AsylumSeekerRef: values('N=No; Y=Yes; R=Refugee'),
  WelshDataSourceRef: values('P=Parent; S=School'),
  TaughtWelshRef: values('N=Not taught; F=First language; S=Second language'),
  SpeaksWelshWithSiblings: welsh,
  SpeaksWelshWithParents: welsh,
  SpeaksWelshAtHome: welsh,
  SpeaksWelshRef: welsh,
  LanguageRef: languages,
  LanguageUseRef: values('F=First language; H=Home language; O=Other'),
  SourceOfInformation: values('P=Parent; S=School'),
  LearnerNationalities: values('GB=British; PL=Polish; IN=Indian; PK=Pakistani; NG=Nigerian; RO=Romanian'),
  TravellerAccommodationTypeRef: values('SIT=Site; HOU=Housed; ROA=Roadside'),
  TravellerSourceRef: values('P=Parent; S=School'),
  LanguageProficiencyRef: values(
    'A=New to English; B=Early acquisition; C=Developing; D=Competent; E=Fluent',
  ),
  DietaryNeedRef: values('VEG=Vegetarian; HAL=Halal; KOS=Kosher; NUT=No nuts; GLU=No gluten; LAC=No lactose'),
  UKCountryRef: values('ENG=England; WAL=Wales; SCO=Scotland; NIR=Northern Ireland'),
  MealPatternDiningSession: values(
    'MON=Monday lunch; TUE=Tuesday lunch; WED=Wednesday lunch; THU=Thursday lunch',
  ),
  HomeLanguage: languages,
  HomeLanguageRef: languages,
  OccupationRef: occupations,
  OccupationReference: occupations,
  LocationTypeRef: locations,
  EmailLocationTypeRef: locations,
  ContactAddressTypeRef: addressTypes,
  AddressTypeRef: addressTypes,
  LearnerContactMatchResult: values('NEW=No match; SUR=Certain match; POS=Possible match'),
  LearnerContactRelationshipTypeRef: relationships,
  ContactLearnerRelationshipTypeRef: relationships,
  Post16SupportSchemeRef: values('BUR=Bursary; EMA=Education maintenance allowance'),
  EarlyYearsPupilPremiumFundingBasisRef: values('EE=Economic; EO=Other; EB=Both'),
  AcademicYear: values('2025=2025/2026; 2024=2024/2025; 2023=2023/2024'),
  ServiceChildrenRef: values('N=No; Y=Yes; R=Refused'),
  ServiceChildSourceRef: values('P=Parent; S=School'),
  YouthSupportService: values('Y=Agreed; N=Not agreed; U=Not asked'),
  ConsentTypeRef: values('PHO=Photographs; VIS=Local visits; NET=Internet; MED=First aid'),
  ConsentStatusRef: values('G=Given; R=Refused; P=Pending'),
  GroundsForRemovalRef: values('8A=Registered elsewhere; 8D=Moved out of reach'),
  DestinationEstablishment: values('4001=Hillcrest Academy; 4002=Riverside School; 2105=Oakfield Primary'),
  School: values('2105=Oakfield Primary; 2106=Brookside Infants; 1010=Little Acorns Nursery'),
  BoarderStatusRef: values('N=Not a boarder; B=Boarder'),
  ModeOfTravelRef: values('WLK=Walk; CAR=Car; BUS=Public bus; SBD=Dedicated school bus; CYC=Cycle; TXI=Taxi'),
  TravelRouteRef: values('R1=Route 1; R2=Route 2; R3=Route 3'),
  RegisteredSureStartRef: sureStart,
  AttendedSureStartRef: sureStart,
  PreSchoolExperienceRef: values('NUR=Nursery; PLY=Playgroup; CHM=Childminder; NON=None'),
  LearnerSENNeedTypeNote: notes,
  SENProvisionAttachment: notes,
  EHCPNote: notes,
  SENEventNote: notes,
  SENStatement: values('FIN=Final statement; DRA=Draft statement'),
  Notes: notes,
  PersonalEducationPlanContributor: values('SW=Social worker; TEA=Class teacher; CAR=Carer'),
  PersonalEducationPlanDocument: notes,
}

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

/** Lists that only lookups and guid fields refer to. */
export const lookupOnlyLists: Lists = {
  SENReviewStatus: values('PLN=Planned; HEL=Held; CAN=Cancelled'),
  SENReviewType: values('ANN=Annual; INT=Interim; TRA=Transition'),
}

/** The id of a listed value, the same wherever it is referred to. */
export function listedId(ids: Identities, list: string, code: string): string {
  return ids.guid('lookup', hashName(list), hashName(code))
}

/** A reference to one value of a list. */
export function listedReference(ids: Identities, list: string, code: string): Record<string, string | null> {
  const value = valueLists[list]?.find((one) => one.code === code)
  return { ExternalID: listedId(ids, list, code), Code: code, Description: value?.description ?? null }
}
