import type { EntityType } from '../odata/csdl.ts'
import { bool, collectionOf, datetimeoffset, entity, nav, ref, string } from './notation.ts'
import { period, typedEntity } from './shared.ts'

/** Dietary domain, special category data (service.md 2.6). */
export const dietaryEntityTypes: readonly EntityType[] = [
  entity('LearnerDietary', {
    DietaryNeeds: nav('DietaryNeedRef'),
    FreeMealEligibilityPeriods: nav('FreeMealEligibility'),
    MealPatterns: nav('MealPatterns'),
    FreeSchoolMilkEligibilityPeriods: nav('FreeSchoolMilkEligibility'),
  }),
  typedEntity('DietaryNeedRef'),
  entity('FreeMealEligibility', {
    ...period,
    ReviewDate: datetimeoffset,
    Notes: string,
    UKCountry: ref('UKCountryRef'),
    Protected: bool,
  }),
  entity('MealPatterns', { ...period, MealPatternDiningSessions: collectionOf('MealPatternDiningSession') }),
  entity('FreeSchoolMilkEligibility', { ...period }),
]
