/** Whose data the entities of a set are. */
export type SetSubject = 'learner' | 'contact' | 'group' | 'lookup'

/** An entity set of the learner domains. */
export interface LearnerSet {
  readonly name: string
  readonly subject: SetSubject
  /** Spellings that lead to the set besides its name; compared without case. */
  readonly aliases: readonly string[]
  /** The permission a caller needs (service.md 1.1); for sets without a row there, that of the nearest one. */
  readonly securityDomain: string
}

const set = (
  name: string,
  securityDomain: string,
  subject: SetSubject = 'learner',
  aliases: readonly string[] = [],
): LearnerSet => ({ name, subject, aliases, securityDomain: `Learner.${securityDomain}` })

/** Every set of the learner domains: those of service.md 1.1, and those that LearnerGroup links to (service.md 2.2). */
export const learnerSets: readonly LearnerSet[] = [
  // The permission is spelled so in the interface.
  set('LearnerIdentifiers', 'Indentifier'),
  set('LearnerPersonals', 'Personal'),
  set('LearnerCulturals', 'Cultural'),
  set('LearnerRegistrations', 'Registration', 'learner', ['LearnerRegistations']),
  set('LearnerGroups', 'Groups', 'group'),
  set('LearnerMedicals', 'Medical'),
  set('LearnerDietarys', 'Dietary'),
  set('LearnerTransports', 'Transport'),
  set('LearnerWelfares', 'Welfares'),
  set('LearnerGrants', 'Grants'),
  set('LearnerContactDetails', 'ContactDetails'),
  set('LearnerSENs', 'SEN'),
  set('LearnerSENLookps', 'SEN', 'lookup', ['LearnerSENLookups']),
  set('LearnerLookups', 'Indentifier', 'lookup'),
  set('LearnerContactBasics', 'ContactDetails'),
  set('LearnerContactContactDetails', 'ContactDetails'),
  set('LearnerContactPersonals', 'ContactDetails', 'contact'),
  set('LearnerConsents', 'Personal'),
  set('LearnerSENReviews', 'SEN.Review'),
  set('LearnerSENEvents', 'SEN'),
  set('LearnerSENStatements', 'SEN'),
  set('LearnerEHCPs', 'SEN.EHCP'),
  set('LearnerPupilPremiumAwards', 'Grants'),
  set('LearnerSchoolHistorys', 'Registration'),
  set('LearnerGeneralNotes', 'Personal'),
  set('ContactBasics', 'ContactDetails', 'contact'),
  set('ContactContactDetails', 'ContactDetails', 'contact'),
  set('ContactPersonals', 'ContactDetails', 'contact'),
  set('Contacts', 'ContactDetails', 'contact'),
]
