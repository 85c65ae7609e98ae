import type { EntityType } from '../odata/csdl.ts'
import { bool, collectionOf, datetimeoffset, decimal, entity, guid, nav, ref, string } from './notation.ts'
import { period } from './shared.ts'

const grants: readonly EntityType[] = [
  entity('LearnerGrant', {
    JobseekersAllowance: bool,
    UniformAllowance: bool,
    DisabilityAccessFund: bool,
    Post16SupportSchemeAwards: nav('Post16SupportSchemeAward'),
    HighNeedsFundingPeriods: nav('HighNeedsFundingPeriod'),
    FundedChildCare: nav('FundedChildCares'),
    EarlyYearsPupilPremiumEligibilitys: nav('EarlyYearsPupilPremiumEligibility'),
    PupilPremiumEligibilitys: nav('PupilPremiumEligibility'),
    LearnerUniformGrantEligibilitys: nav('LearnerUniformGrantEligibility'),
    LearnerZeroRatedFundings: nav('LearnerZeroRatedFunding'),
    // Service.md 2.8 does not list the next three links for this type, but the expand list in service.md 1.1 contains them.
    ChildProtectionPlans: nav('LearnerChildProtectionPlan'),
    IncareDetails: nav('LearnerInCareDetail'),
    PersonalEducationPlans: nav('PersonalEducationPlan'),
  }),
  entity('Post16SupportSchemeAward', {
    DateAwarded: string,
    Note: string,
    Post16SupportScheme: ref('Post16SupportSchemeRef'),
  }),
  entity('HighNeedsFundingPeriod', { ...period, Notes: string }),
  entity('FundedChildCares', { ...period, CodeNumber: string, Notes: string }),
  entity('EarlyYearsPupilPremiumEligibility', {
    ...period,
    Notes: string,
    EarlyYearsPupilPremiumFundingBasis: ref('EarlyYearsPupilPremiumFundingBasisRef'),
  }),
  entity('PupilPremiumEligibility', { ...period, Note: string }),
  entity('LearnerUniformGrantEligibility', { ...period, Notes: string }),
  entity('LearnerZeroRatedFunding', { Note: string, AcademicYear: ref('AcademicYear') }),
]

const welfare: readonly EntityType[] = [
  entity('LearnerWelfare', {
    ServiceChild: ref('ServiceChildrenRef'),
    ServiceChildSource: ref('ServiceChildSourceRef'),
    IncareDetails: nav('LearnerInCareDetail'),
    PersonalEducationPlans: nav('PersonalEducationPlan'),
    YoungCarerPeriods: nav('LearnerYoungCarer'),
    ChildProtectionPlans: nav('LearnerChildProtectionPlan'),
  }),
  entity('LearnerInCareDetail', { ...period, CareAuthority: ref('CareAuthorityRef') }),
  entity('PersonalEducationPlan', {
    ...period,
    InCareDetail: guid,
    PersonalEducationPlanContributors: collectionOf('PersonalEducationPlanContributor'),
    Notes: collectionOf('PersonalEducationPlanDocument'),
  }),
  entity('LearnerYoungCarer', { ...period, Notes: string }),
  entity('LearnerChildProtectionPlan', { ...period, Notes: string, CareAuthority: ref('CareAuthorityRef') }),
]

const consent: readonly EntityType[] = [
  entity('LearnerConsent', {
    YouthSupportServicesAgreement: ref('YouthSupportService'),
    LearnerConsentTypes: nav('LearnerConsentType'),
  }),
  entity('LearnerConsentType', {
    ConsentDate: datetimeoffset,
    ConsentingAdult: string,
    Notes: string,
    ConsentType: ref('ConsentTypeRef'),
    ConsentStatus: ref('ConsentStatusRef'),
  }),
]

const pupilPremium: readonly EntityType[] = [
  entity('LearnerPupilPremiumAwards', { PupilPremiumAwards: nav('PupilPremiumAwards') }),
  entity('PupilPremiumAwards', {
    ...period,
    Amount: decimal,
    DeprivationPupil: bool,
    LookedAfter: bool,
    EarlyYears: bool,
    FullTimeEquivalent: bool,
    AdoptedFromCare: bool,
    ServicePupil: bool,
    // This field appears only in service-facts 17.
    LastFSM: string,
  }),
]

/** The entity types of grants, welfare, consent and pupil premium. Grants and welfare are special category data (service.md 2.8). */
export const grantsWelfareEntityTypes: readonly EntityType[] = [
  ...grants,
  ...welfare,
  ...consent,
  ...pupilPremium,
]
