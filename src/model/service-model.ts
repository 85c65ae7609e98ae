import type { ComplexType, ServiceModel } from '../odata/csdl.ts'
import { attendanceComplexTypes, attendanceEntityTypes, attendanceFunctions } from './attendance.ts'
import { contactsEntityTypes } from './contacts.ts'
import { grantsWelfareEntityTypes } from './grants-welfare.ts'
import { identityEntityTypes } from './identity.ts'
import { complex, guid, required, serviceNamespace, string } from './notation.ts'
import { registrationEntityTypes } from './registration.ts'
import { senComplexTypes, senEntityTypes } from './sen.ts'
import { enumTypes, sharedComplexTypes } from './shared.ts'
import {
  culturalEntityTypes,
  dietaryEntityTypes,
  medicalComplexTypes,
  medicalEntityTypes,
} from './special-categories.ts'

export interface ServiceSet {
  /** The name of the set, as the service spells it. */
  readonly name: string
  /** The name of the entity type, without namespace. */
  readonly entityType: string
  /**
   * The permission that a caller needs, spelt (and misspelt) as in service.md 1.1. If service.md gives none, the permission of a similar
   * set is assumed.
   */
  readonly securityDomain: string
  /** Other spellings of the name that paths may contain. */
  readonly aliases: readonly string[]
}

const set = (
  name: string,
  entityType: string,
  securityDomain: string,
  ...aliases: readonly string[]
): ServiceSet => ({ name, entityType, securityDomain, aliases })

/** The sets with a path in service.md 1.1 and 1.2 or in service-facts 4. The names have the misspellings of these sources. */
const documented: readonly ServiceSet[] = [
  set('LearnerIdentifiers', 'LearnerIdentifier', 'Learner.Indentifier'),
  set('LearnerPersonals', 'LearnerPersonal', 'Learner.Personal'),
  set('LearnerCulturals', 'LearnerCultural', 'Learner.Cultural'),
  set('LearnerRegistrations', 'LearnerRegistration', 'Learner.Registration', 'LearnerRegistations'),
  set('LearnerGroups', 'LearnerGroup', 'Learner.Groups'),
  set('LearnerMedicals', 'LearnerMedical', 'Learner.Medical'),
  set('LearnerDietarys', 'LearnerDietary', 'Learner.Dietary'),
  set('LearnerTransports', 'LearnerTransport', 'Learner.Transport'),
  set('LearnerWelfares', 'LearnerWelfare', 'Learner.Welfares'),
  set('LearnerGrants', 'LearnerGrant', 'Learner.Grants'),
  set('LearnerContactDetails', 'LearnerContactDetails', 'Learner.ContactDetails'),
  set('LearnerSENs', 'LearnerSEN', 'Learner.SEN'),
  set('LearnerSENLookps', 'LearnerSENLookup', 'Learner.SEN', 'LearnerSENLookups'),
  set('AttendanceRecords', 'AttendanceRecord', 'Attendance'),
  set('StatutoryAttendanceSessions', 'StatutoryAttendanceSession', 'Attendance'),
  set('StatutoryAttendanceRecordHistorys', 'StatutoryAttendanceRecordHistory', 'Attendance'),
]

/** The sets of the other top-level types of service.md 2. Their names are assumed, from the links of LearnerGroup where it has a link. */
const assumed: readonly ServiceSet[] = [
  set('AttendanceLookups', 'AttendanceLookup', 'Attendance'),
  set('LearnerLookups', 'LearnerLookup', 'Learner.Indentifier'),
  set('LearnerContactBasics', 'LearnerContactBasic', 'Learner.ContactDetails'),
  set('LearnerContactContactDetails', 'LearnerContactContactDetails', 'Learner.ContactDetails'),
  set('LearnerContactPersonals', 'LearnerContactPersonal', 'Learner.ContactDetails'),
  set('LearnerConsents', 'LearnerConsent', 'Learner.Personal'),
  set('LearnerSENReviews', 'LearnerSENReview', 'Learner.SEN.Review'),
  set('LearnerSENEvents', 'LearnerSENEvent', 'Learner.SEN'),
  set('LearnerSENStatements', 'LearnerSENStatement', 'Learner.SEN'),
  set('LearnerEHCPs', 'LearnerEHCP', 'Learner.SEN.EHCP'),
  set('LearnerPupilPremiumAwards', 'LearnerPupilPremiumAwards', 'Learner.Grants'),
  set('LearnerSchoolHistorys', 'LearnerSchoolHistory', 'Learner.Registration'),
  set('LearnerGeneralNotes', 'LearnerGeneralNote', 'Learner.Personal'),
  set('ContactBasics', 'ContactBasic', 'Learner.ContactDetails'),
  set('ContactContactDetails', 'ContactContactDetails', 'Learner.ContactDetails'),
  set('ContactPersonals', 'ContactPersonal', 'Learner.ContactDetails'),
  set('Contacts', 'Contact', 'Learner.ContactDetails'),
]

export const serviceSets: readonly ServiceSet[] = [...documented, ...assumed]

const complexTypes: readonly ComplexType[] = [
  ...sharedComplexTypes,
  ...medicalComplexTypes,
  ...senComplexTypes,
  ...attendanceComplexTypes,
]

const entityTypes = [
  ...identityEntityTypes,
  ...medicalEntityTypes,
  ...senEntityTypes,
  ...culturalEntityTypes,
  ...dietaryEntityTypes,
  ...contactsEntityTypes,
  ...grantsWelfareEntityTypes,
  ...registrationEntityTypes,
  ...attendanceEntityTypes,
]

/**
 * Declares the types that service.md names without their fields. They get an id, a code and a description, as lookups have (service.md
 * 2.11).
 */
function namedTypes(): ComplexType[] {
  const declared = new Set([...complexTypes, ...enumTypes].map(({ name }) => `${serviceNamespace}.${name}`))
  const used = new Set(
    [...complexTypes, ...entityTypes].flatMap(({ properties }) => properties.map(({ type }) => type)),
  )
  const fields = { ExternalID: required(guid), Code: string, Description: string }
  return [...used]
    .filter((type) => !type.startsWith('Edm.') && !declared.has(type))
    .map((type) => complex(type.slice(serviceNamespace.length + 1), fields))
}

/**
 * The model of the whole V3 service (service.md 2). `$metadata`, the checks of queries and bodies, and the sandbox use it. The alias `SIMS`
 * is the namespace in paths of the service (service-facts 4 and 15).
 */
export const serviceModel: ServiceModel = {
  schemas: [
    {
      namespace: serviceNamespace,
      alias: 'SIMS',
      enumTypes,
      complexTypes: [...complexTypes, ...namedTypes()],
      entityTypes,
      functions: attendanceFunctions,
    },
  ],
  container: {
    namespace: serviceNamespace,
    name: 'Container',
    entitySets: serviceSets.map(({ name, entityType }) => ({
      name,
      entityType: `${serviceNamespace}.${entityType}`,
    })),
  },
}
