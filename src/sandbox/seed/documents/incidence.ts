/** How common the items of a collection are: the share of owners who have any, and the most that one has. */
export interface Incidence {
  readonly share: number
  readonly most: number
}

const rare: Incidence = { share: 0.03, most: 1 }
const always: Incidence = { share: 1, most: 1 }

const known: Readonly<Record<string, Incidence>> = {
  PreviousNames: { share: 0.04, most: 1 },
  MedicalConditions: { share: 0.18, most: 2 },
  Disabilities: { share: 0.04, most: 1 },
  MedicalEvents: { share: 0.2, most: 3 },
  MedicalNotes: { share: 0.08, most: 2 },
  LearnerParamedicalSupports: { share: 0.05, most: 1 },
  MedicalProviders: always,
  MedicalConditionNotes: { share: 0.5, most: 1 },
  MedicalEventNotes: { share: 0.3, most: 1 },
  LearnerLanguageDetails: { share: 1, most: 2 },
  LearnerTravellerDetails: { share: 0.01, most: 1 },
  LearnerNationalities: { share: 1, most: 2 },
  NationalLanguageProficiencyTests: { share: 0.2, most: 1 },
  LearnerPassportDetails: { share: 0.15, most: 1 },
  NewcomerPeriods: { share: 0.02, most: 1 },
  DietaryNeeds: { share: 0.12, most: 2 },
  FreeMealEligibilityPeriods: { share: 0.24, most: 2 },
  MealPatterns: { share: 0.6, most: 1 },
  MealPatternDiningSessions: { share: 1, most: 4 },
  FreeSchoolMilkEligibilityPeriods: { share: 0.3, most: 1 },
  SENNeeds: { share: 0.17, most: 2 },
  SENProvisions: { share: 0.17, most: 2 },
  SENStatuses: { share: 0.2, most: 2 },
  MostAbleSubjects: { share: 0.08, most: 2 },
  LearnerSENReviews: { share: 0.12, most: 2 },
  SENReviewParticipants: { share: 1, most: 3 },
  EHCPs: { share: 0.05, most: 1 },
  SENEvent: { share: 0.06, most: 2 },
  SENStatement: { share: 0.02, most: 1 },
  Enrolments: always,
  EnrolmentStatuses: always,
  BoarderStatuses: { share: 0, most: 1 },
  UPNHistory: { share: 0.05, most: 1 },
  PreviousSchools: { share: 0.35, most: 2 },
  AttendanceSummaries: { share: 1, most: 2 },
  PupilPremiumEligibilitys: { share: 0.24, most: 1 },
  PupilPremiumAwards: { share: 0.24, most: 2 },
  IncareDetails: { share: 0.01, most: 1 },
  PersonalEducationPlans: { share: 0.01, most: 1 },
  PersonalEducationPlanContributors: { share: 1, most: 2 },
  YoungCarerPeriods: { share: 0.01, most: 1 },
  ChildProtectionPlans: { share: 0.01, most: 1 },
  LearnerConsentTypes: { share: 1, most: 4 },
  Telephones: { share: 1, most: 2 },
  Emails: always,
  Addresses: always,
  LearnerRelationships: always,
}

/** The incidence of a collection by its name; 3 % of owners have one item where nothing is known. */
export function incidenceOf(collection: string): Incidence {
  return known[collection] ?? rare
}
