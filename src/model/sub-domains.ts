/** Whether the service serves a sub domain today (service.md 1.1). */
type Availability = 'available' | 'announced' | 'unavailable'

/** One address under which a sub domain is served. */
interface SubDomainPath {
  /** Relative to the base address, as the interface spells it; the version segment's case varies (service-facts 13). */
  readonly path: string
  /** The navigation properties that the interface's own example expands, nested ones in `$expand` notation. */
  readonly expand: readonly string[]
}

/** A sub domain of the service: one call, one security domain (service.md 1.1). */
interface SubDomain {
  readonly name: string
  /** Entity set of the service model, spelled as the last segment of its path. */
  readonly entitySet: string
  /** Its entity type, without namespace. */
  readonly entityType: string
  /** The documented path first; then the forms of service-facts 13. */
  readonly paths: readonly SubDomainPath[]
  /** Permission that the caller needs, spelled as in the interface. */
  readonly securityDomain: string
  /** Permissions that some queries need as well. */
  readonly furtherSecurityDomains: readonly string[]
  readonly methods: readonly ('GET' | 'PATCH' | 'POST')[]
  readonly availability: Availability
  /** Special category data under GDPR. */
  readonly specialCategory: boolean
}

/** The defaults of a sub domain. */
const usual = {
  furtherSecurityDomains: [],
  methods: ['GET'],
  availability: 'available',
  specialCategory: false,
} as const satisfies Partial<SubDomain>

const noExpand: readonly string[] = []

/** V3 paths: as documented, below `/Learner` and below `/Learner/odata` (service-facts 13). */
const v3 = (entitySet: string, expand = noExpand): readonly SubDomainPath[] =>
  [`/V3/${entitySet}`, `/Learner/V3/${entitySet}`, `/Learner/odata/V3/${entitySet}`].map((path) => ({
    path,
    expand,
  }))

/** Paths of the sub domains that are documented below `/Learner` themselves. */
const learnerV3 = (entitySet: string, version: 'v3' | 'V3'): readonly SubDomainPath[] =>
  [`/Learner/${version}/${entitySet}`, `/V3/${entitySet}`, `/Learner/odata/V3/${entitySet}`].map((path) => ({
    path,
    expand: noExpand,
  }))

const v1 = (entitySet: string, expand: readonly string[]): readonly SubDomainPath[] => [
  { path: `/V1/${entitySet}`, expand },
]

const welfareAndGrants = ['ChildProtectionPlans', 'IncareDetails', 'PersonalEducationPlans']

/** The table of service.md 1.1 and 1.2, row for row. */
export const subDomains: readonly SubDomain[] = [
  {
    ...usual,
    name: 'Learner Identifiers',
    entitySet: 'LearnerIdentifiers',
    entityType: 'LearnerIdentifier',
    paths: v3('LearnerIdentifiers'),
    // Spelled so in the interface.
    securityDomain: 'Learner.Indentifier',
  },
  {
    ...usual,
    name: 'Learner Personal',
    entitySet: 'LearnerPersonals',
    entityType: 'LearnerPersonal',
    paths: v3('LearnerPersonals'),
    securityDomain: 'Learner.Personal',
    methods: ['GET', 'PATCH'],
  },
  {
    ...usual,
    name: 'Learner Cultural',
    entitySet: 'LearnerCulturals',
    entityType: 'LearnerCultural',
    paths: v3('LearnerCulturals'),
    securityDomain: 'Learner.Cultural',
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner Registration',
    entitySet: 'LearnerRegistrations',
    entityType: 'LearnerRegistration',
    paths: [
      ...v3('LearnerRegistrations', ['Enrolments($expand=EnrolmentStatuses)']),
      // Spelled so in the interface.
      {
        path: '/V2/LearnerRegistations',
        expand: ['Enrolments', 'BoarderStatuses', 'PartTimeRecords', 'UPNHistory'],
      },
    ],
    securityDomain: 'Learner.Registration',
    availability: 'unavailable',
  },
  {
    ...usual,
    name: 'Learner Groups',
    entitySet: 'LearnerGroups',
    entityType: 'LearnerGroup',
    paths: learnerV3('LearnerGroups', 'v3'),
    securityDomain: 'Learner.Groups',
  },
  {
    ...usual,
    name: 'Learner Medical',
    entitySet: 'LearnerMedicals',
    entityType: 'LearnerMedical',
    paths: v3('LearnerMedicals', [
      'MedicalConditions',
      'Disabilities',
      'MedicalEvents',
      'MedicalNotes',
      'LearnerParamedicalSupports',
      'MedicalProviders',
    ]),
    securityDomain: 'Learner.Medical',
    availability: 'announced',
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner Dietary',
    entitySet: 'LearnerDietarys',
    entityType: 'LearnerDietary',
    paths: v3('LearnerDietarys', [
      'FreeMealEligibilityPeriods',
      'FreeSchoolMilkEligibilityPeriods',
      'MealPatterns',
      'DietaryNeeds',
    ]),
    securityDomain: 'Learner.Dietary',
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner Transport',
    entitySet: 'LearnerTransports',
    entityType: 'LearnerTransport',
    paths: v3('LearnerTransports'),
    securityDomain: 'Learner.Transport',
  },
  {
    ...usual,
    name: 'Learner Welfare',
    entitySet: 'LearnerWelfares',
    entityType: 'LearnerWelfare',
    paths: v1('LearnerWelfares', welfareAndGrants),
    securityDomain: 'Learner.Welfares',
    availability: 'unavailable',
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner Grants',
    entitySet: 'LearnerGrants',
    entityType: 'LearnerGrant',
    // service.md gives Welfare's list for Grants, too, although LearnerGrant has none of these links.
    paths: v1('LearnerGrants', welfareAndGrants),
    securityDomain: 'Learner.Grants',
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner Contact Details',
    entitySet: 'LearnerContactDetails',
    entityType: 'LearnerContactDetails',
    paths: v1('LearnerContactDetails', ['Addresses', 'Telephones', 'Emails', 'LearnerContactRelationships']),
    securityDomain: 'Learner.ContactDetails',
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner SEN',
    entitySet: 'LearnerSENs',
    entityType: 'LearnerSEN',
    paths: learnerV3('LearnerSENs', 'V3'),
    securityDomain: 'Learner.SEN',
    furtherSecurityDomains: ['Learner.SEN.Review', 'Learner.SEN.EHCP'],
    specialCategory: true,
  },
  {
    ...usual,
    name: 'Learner SEN Lookups',
    entitySet: 'LearnerSENLookps',
    entityType: 'LearnerSENLookup',
    paths: learnerV3('LearnerSENLookps', 'V3'),
    securityDomain: 'Learner.SEN',
  },
  {
    ...usual,
    name: 'Attendance',
    entitySet: 'AttendanceRecords',
    entityType: 'AttendanceRecord',
    paths: [{ path: '/Attendance/V3/AttendanceRecords', expand: noExpand }],
    securityDomain: 'Attendance',
    methods: ['GET', 'POST'],
  },
]
