import {
  dayMs,
  formatInstant,
  isOnRoll,
  monthsBetween,
  rollStateOn,
  schoolYearOf,
  yearGroupOn,
} from '../dates.ts'
import type { Identities } from '../identity.ts'
import type { Json } from '../json.ts'
import { hashName, type Random } from '../random.ts'
import { schoolDayAfter } from '../seed/calendar.ts'
import { classNameOn, type Pupil, streets } from '../seed/pupils.ts'

export interface Contact {
  readonly id: string
  readonly number: number
  readonly forename: string
  readonly middleName: string
  readonly surname: string
  readonly gender: 'Female' | 'Male'
  readonly birthDay: number
}

/** The learner or contact whose data the fields of an entity contain, with the context for computing the fields. */
export interface Subject {
  readonly ids: Identities
  /** The current day, and the first day of the school year for which the school was planned. */
  readonly day: number
  readonly yearStart: number
  readonly pupil: Pupil
  readonly contacts: readonly Contact[]
  /** The contact, or `undefined` if the entity contains only data of the learner. */
  readonly contact: Contact | undefined
  /** The position of the entity in its collection, counted from 0. */
  readonly index: number
  readonly random: Random
  readonly nextId: (type: string) => string
  /** A random number of up to nine digits, drawn once for each structure. */
  readonly draw: number
}

interface ListedValue {
  readonly code: string
  readonly description: string
}

/** The values of reference types. Each line has the names of types, and then pairs `CODE=Description`, the most common pair first. */
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

/** Picks a value of a list. Picks the first value in at least half of all cases. Returns `undefined` if there is no such list. */
export function pickListed(list: string, random: Random): ListedValue | undefined {
  const values = valueLists.get(list)
  return values === undefined || random.chance(0.5) ? values?.[0] : random.pick(values)
}

/** Returns the id of a value of a list. All references to the value have the same id. */
export function listedId(ids: Identities, list: string, code: string): string {
  return ids.guid('lookup', hashName(list), hashName(code))
}

/**
 * The collections that always have items, with their maximum number of items. Any other collection has one item in a fifth of the cases,
 * and otherwise none.
 */
export const usualItems: Readonly<Record<string, number>> = {
  ...{ MedicalProviders: 1, Enrolments: 1, EnrolmentStatuses: 1, Emails: 1, Addresses: 1 },
  ...{ LearnerLanguageDetails: 2, LearnerNationalities: 2, LearnerConsentTypes: 2, Telephones: 2 },
  ...{ MealPatternDiningSessions: 2, SENReviewParticipants: 2, AttendanceSummaries: 2 },
}

export const named = (id: string, code: string | null, description: string): Record<string, Json> => ({
  ...{ ExternalID: id, Code: code, Description: description },
})
export function listed(ids: Identities, list: string, code: string): Json {
  const value = valueLists.get(list)?.find((one) => one.code === code)
  return named(listedId(ids, list, code), code, value?.description ?? code)
}
export const personOf = ({ pupil, contact }: Subject): Contact | Pupil => contact ?? pupil
export const fullName = ({ forename, surname }: Contact | Pupil): string => `${forename} ${surname}`
export const dateOf = (day: number): string => formatInstant(day * dayMs)

type Fact = (subject: Subject) => Json
const sevenDigits = (subject: Subject): string => String(personOf(subject).number).padStart(7, '0')
const addressee = ({ pupil, contact }: Subject): string => {
  if (contact === undefined) return `Parents of ${fullName(pupil)}`
  return `${contact.gender === 'Male' ? 'Mr' : 'Ms'} ${contact.forename.charAt(0)} ${contact.surname}`
}
const startOf = ({ pupil, index, yearStart }: Subject): number =>
  yearStart - 30 - ((pupil.number * 37 + index * 101) % 800)
const start: Fact = (subject) => dateOf(startOf(subject))
const end: Fact = (subject) => (subject.index % 2 === 0 ? null : dateOf(startOf(subject) + 60))
const hasLeft = ({ pupil, day }: Subject): boolean => day > pupil.leavingDay
const leavingDate: Fact = (subject) => (hasLeft(subject) ? dateOf(subject.pupil.leavingDay) : null)
const guidOf =
  (list: string): Fact =>
  ({ ids, random }) =>
    listedId(ids, list, pickListed(list, random)?.code ?? '')

type Sample = Fact | readonly [Json, ...Json[]]
const shared = (sample: Sample, ...fields: string[]): Record<string, Sample> =>
  Object.fromEntries(fields.map((field) => [field, sample]))

/**
 * The values of fields, by `Type.Field` or by the name of the field. A function computes the value from the learner, the contact and the
 * day. From a list, a value is drawn at random. Any other field gets the default of its type.
 */
export const samples: Readonly<Record<string, Sample>> = {
  ...shared((subject) => personOf(subject).middleName, 'MiddleName', 'MiddleNames'),
  ...shared(({ pupil }) => pupil.forename, 'LegalForename', 'PreferredForename'),
  ...shared(({ pupil }) => pupil.surname, 'LegalSurname', 'PreferredSurname'),
  ...shared(start, 'StartDate', 'FromDate', 'DateAwarded', 'LastFSM'),
  ...shared(end, 'EndDate', 'ToDate'),
  ...shared(addressee, 'Salutation', 'Addressee', 'ParentalSalutation', 'ParentalAddressee'),
  ...shared(({ index }) => index + 1, 'Priority', 'Rank'),
  ...shared(({ index }) => index === 0, 'IsFirstPointOfContact', 'IsMainEmail', 'UseForAutomatedMessages'),
  ...shared([true], 'BirthCertificateSeen', 'HasParentalResponsibility', 'ReceivesCorrespondance'),
  ...shared(
    [true],
    'ReceivesSchoolReport',
    'IsMailingPoint',
    'ParentalBallot',
    'DeprivationPupil',
    'Invited',
  ),
  ...shared([null], 'DateOfDeath', 'DateCeased'),
  Forename: (subject) => personOf(subject).forename,
  Surname: (subject) => personOf(subject).surname,
  LegalMiddleNames: ({ pupil }) => pupil.middleName,
  NameOnPassport: ({ pupil }) => fullName(pupil),
  GenderCategory: ({ pupil }) => pupil.gender,
  DateOfBirth: (subject) => dateOf(personOf(subject).birthDay),
  // The date is in the past even for learners who start next September.
  DateOfApplication: ({ pupil, yearStart }) =>
    dateOf(Math.min(pupil.admissionDay, yearStart) - 60 - (pupil.number % 200)),
  AgeMonths: ({ pupil, day }) => monthsBetween(pupil.birthDay, day),
  OnRollState: ({ pupil, day }) => rollStateOn(pupil, day),
  CurrentYearGroup: (subject) => groupOf(subject, 'YearGroup'),
  CurrentPrimaryClass: (subject) => groupOf(subject, 'PrimaryClass'),
  CurrentHouse: (subject) => groupOf(subject, 'House'),
  DateOfAdmission: ({ pupil }) => dateOf(pupil.admissionDay),
  // The date is null until the learner has left.
  DateOfLeaviing: leavingDate,
  DestinationStartDate: (subject) =>
    hasLeft(subject) ? dateOf(schoolDayAfter(subject.pupil.leavingDay)) : null,
  'LearnerEnrolment.ReasonForLeaving': (subject) => {
    const { leavingDay, entryYear } = subject.pupil
    const endsPhase = schoolYearOf(leavingDay + 1) === entryYear + 6
    return hasLeft(subject) ? listed(subject.ids, 'ReasonForLeavingRef', endsPhase ? 'END' : 'TRF') : null
  },
  GroundsForRemoval: () => null,
  DestinationEstablishment: (subject) =>
    hasLeft(subject) ? listed(subject.ids, 'DestinationEstablishment', '4001') : null,
  'LearnerEnrolmentStatus.StartDate': ({ pupil }) => dateOf(pupil.admissionDay),
  'LearnerEnrolmentStatus.EndDate': leavingDate,
  'LearnerPersonal.Title': () => null,
  ReviewDate: ({ yearStart }) => dateOf(yearStart + 200),
  ExpiryDate: ({ yearStart }) => dateOf(yearStart + 1200),
  ConsentingAdult: ({ contacts: [first] }) => (first === undefined ? null : fullName(first)),
  LearnerPersonInvolved: ({ contacts: [first] }) => first?.id ?? null,
  // These values belong to no real person: QQ is never issued, NHS numbers from 999 are for tests, 01632 960 is for fiction, and ZZ is not
  // a postcode area.
  NationalInsuranceNumber: (subject) => `QQ${sevenDigits(subject).slice(-6)}C`,
  NHSNumber: (subject) => `999${sevenDigits(subject)}`,
  TelephoneNumber: (subject) => `01632 960${sevenDigits(subject).slice(-3)}`,
  PostCode: ({ pupil }) => `ZZ${1 + (pupil.number % 9)} 1AB`,
  BuildingNumber: ({ pupil }) => String(1 + (pupil.number % 140)),
  Street: ({ pupil }) => streets[pupil.number % streets.length] ?? null,
  AdmissionNumber: ({ pupil }) => String(1000 + pupil.number).padStart(6, '0'),
  UniquePupilNumber: ({ draw }) => `Z${String(draw).padStart(12, '0')}`,
  UniqueLearnerNumber: (subject) => `9${sevenDigits(subject)}00`,
  EmailAddress: (subject) => `contact${personOf(subject).number}@example.org`,
  PassportNumber: (subject) => `10${sevenDigits(subject)}`,
  CodeNumber: (subject) => `500${sevenDigits(subject)}0`,
  OutcomeSENStatus: guidOf('SENStatusRef'),
  ReviewStatus: guidOf('SENReviewStatus'),
  ReviewType: guidOf('SENReviewType'),
  VenueName: guidOf('Venue'),
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
  Accepted: [true, false],
  Attended: [true, false],
  EnglishAsAdditional: [false, false, true],
}

/** The types of groups (service-facts 15). `shortName` returns `undefined` if the pupil belongs to no group of the type. */
const groupTypes = {
  YearGroup: {
    shortName: (pupil: Pupil, day: number) => String(yearGroupOn(pupil, day)),
    fullName: (name: string) => `Year ${name}`,
  },
  PrimaryClass: { shortName: classNameOn, fullName: (name: string) => `Class ${name}` },
  House: { shortName: ({ house }: Pupil) => house, fullName: (name: string) => `${name} House` },
} as const

/** Returns a reference to a learner's group of a type, or null if the learner is not on roll or has no such group. */
function groupOf({ ids, pupil, day }: Subject, type: keyof typeof groupTypes): Json {
  const name = isOnRoll(pupil, day) ? groupTypes[type].shortName(pupil, day) : undefined
  if (name === undefined) return null
  const Description = type === 'YearGroup' ? groupTypes[type].fullName(name) : name
  return { Description, ExternalID: groupId(ids, name), Type: `PastoralGroup.Definition.${type}` }
}

interface Group {
  readonly entity: Record<string, Json> & { readonly ExternalID: string }
  readonly members: ReadonlySet<number>
}

/** Returns the year groups, classes and houses of the pupils who are on roll on a day, sorted by id. */
export function groupsOn(day: number, ids: Identities, pupils: readonly Pupil[]): Group[] {
  const current = pupils.filter((pupil) => isOnRoll(pupil, day))
  return Object.entries(groupTypes)
    .flatMap(([GroupType, { shortName, fullName }]) => {
      const members = Map.groupBy(current, (pupil) => shortName(pupil, day))
      const names = [...members.keys()].filter((name) => name !== undefined)
      return names.sort().map((name, index) => ({
        entity: {
          ...{ ExternalID: groupId(ids, name), GroupType, ShortName: name, FullName: fullName(name) },
          DisplayOrder: index + 1,
        },
        members: new Set(members.get(name)?.map(({ number }) => number)),
      }))
    })
    .sort((one, other) => (one.entity.ExternalID < other.entity.ExternalID ? -1 : 1))
}

/** Returns the id of a group by its short name: a year from 1 to 6, a class from `1A` to `6D`, or a house. */
function groupId(ids: Identities, name: string): string {
  const letter = name.charCodeAt(name.length - 1) - 64
  const number = /^\d$/.test(name)
    ? Number(name)
    : /^\d/.test(name)
      ? Number(name.charAt(0)) * 10 + letter
      : 100 + name.charCodeAt(0)
  return ids.guid('group', number)
}
