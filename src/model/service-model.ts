import type { EntitySet, ServiceModel } from '../odata/csdl.ts'
import { attendanceComplexTypes, attendanceEntityTypes, attendanceFunctions } from './attendance.ts'
import { contactsComplexTypes, contactsEntityTypes } from './contacts.ts'
import { culturalComplexTypes, culturalEntityTypes } from './cultural.ts'
import { dietaryComplexTypes, dietaryEntityTypes } from './dietary.ts'
import { grantsWelfareComplexTypes, grantsWelfareEntityTypes } from './grants-welfare.ts'
import { identityComplexTypes, identityEntityTypes } from './identity.ts'
import { medicalComplexTypes, medicalEntityTypes } from './medical.ts'
import { serviceNamespace } from './notation.ts'
import { registrationComplexTypes, registrationEntityTypes } from './registration.ts'
import { senComplexTypes, senEntityTypes } from './sen.ts'
import { enumTypes, sharedComplexTypes } from './shared.ts'
import { subDomains } from './sub-domains.ts'

const set = (name: string, entityType: string): EntitySet => ({
  name,
  entityType: `${serviceNamespace}.${entityType}`,
})

/** Sets with a path in service.md 1.1 and 1.2 or in service-facts 4, misspelt as there. */
const documentedSets: readonly EntitySet[] = [
  ...subDomains.map(({ entitySet, entityType }) => set(entitySet, entityType)),
  set('StatutoryAttendanceSessions', 'StatutoryAttendanceSession'),
  set('StatutoryAttendanceRecordHistorys', 'StatutoryAttendanceRecordHistory'),
]

/** Sets of the other top-level types of service.md 2, named as LearnerGroup's links name them where it does. */
const assumedSets: readonly EntitySet[] = [
  set('AttendanceLookups', 'AttendanceLookup'),
  set('LearnerLookups', 'LearnerLookup'),
  set('LearnerContactBasics', 'LearnerContactBasic'),
  set('LearnerContactContactDetails', 'LearnerContactContactDetails'),
  set('LearnerContactPersonals', 'LearnerContactPersonal'),
  set('LearnerConsents', 'LearnerConsent'),
  set('LearnerSENReviews', 'LearnerSENReview'),
  set('LearnerSENEvents', 'LearnerSENEvent'),
  set('LearnerSENStatements', 'LearnerSENStatement'),
  set('LearnerEHCPs', 'LearnerEHCP'),
  set('LearnerPupilPremiumAwards', 'LearnerPupilPremiumAwards'),
  set('LearnerSchoolHistorys', 'LearnerSchoolHistory'),
  set('LearnerGeneralNotes', 'LearnerGeneralNote'),
  set('ContactBasics', 'ContactBasic'),
  set('ContactContactDetails', 'ContactContactDetails'),
  set('ContactPersonals', 'ContactPersonal'),
  set('Contacts', 'Contact'),
].map((entitySet) => ({ ...entitySet, assumed: true }))

/**
 * The whole V3 service of service.md 2 as data: one declaration for `$metadata`, the checking of queries and bodies,
 * and the stand-in service. `SIMS` is the namespace that the service's own addresses use (service-facts 4 and 15).
 */
export const serviceModel: ServiceModel = {
  schemas: [
    {
      namespace: serviceNamespace,
      alias: 'SIMS',
      enumTypes,
      complexTypes: [
        ...sharedComplexTypes,
        ...identityComplexTypes,
        ...medicalComplexTypes,
        ...senComplexTypes,
        ...culturalComplexTypes,
        ...dietaryComplexTypes,
        ...contactsComplexTypes,
        ...grantsWelfareComplexTypes,
        ...registrationComplexTypes,
        ...attendanceComplexTypes,
      ],
      entityTypes: [
        ...identityEntityTypes,
        ...medicalEntityTypes,
        ...senEntityTypes,
        ...culturalEntityTypes,
        ...dietaryEntityTypes,
        ...contactsEntityTypes,
        ...grantsWelfareEntityTypes,
        ...registrationEntityTypes,
        ...attendanceEntityTypes,
      ],
      functions: attendanceFunctions,
    },
  ],
  container: {
    namespace: serviceNamespace,
    name: 'Container',
    entitySets: [...documentedSets, ...assumedSets],
  },
}
