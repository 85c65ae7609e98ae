/** An entity set of the service. */
export interface ServiceSet {
  /** As the interface spells it. */
  readonly name: string
  /** Its entity type, without namespace. */
  readonly entityType: string
  /** The permission that a caller needs (service.md 1.1), misspelt as there; for sets without a row there, that of the nearest one. */
  readonly securityDomain: string
  /** Other spellings that lead to the set. */
  readonly aliases: readonly string[]
}

const set = (
  name: string,
  entityType: string,
  securityDomain: string,
  ...aliases: readonly string[]
): ServiceSet => ({ name, entityType, securityDomain, aliases })

/** Sets with a path in service.md 1.1 and 1.2 or in service-facts 4, misspelt as there. */
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

/** Sets of the other top-level types of service.md 2, named as LearnerGroup's links name them where it does. */
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

/** Every entity set of V3. */
export const serviceSets: readonly ServiceSet[] = [...documented, ...assumed]
